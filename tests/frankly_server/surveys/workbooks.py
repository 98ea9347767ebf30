# SPDX-License-Identifier: Apache-2.0
"""XLSForm workbooks for tests."""

import base64
import io
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

from openpyxl import Workbook

SURVEY = ("type", "name", "label", "required", "relevant", "constraint", "appearance", "parameters")
CHOICES = (
    ("list_name", "name", "label"),
    ("yn", "yes", "Yes"),
    ("yn", "no", "No"),
    ("fruit", "apple", "Apple"),
    ("fruit", "pear", "Pear"),
    ("fruit", "plum", "Plum"),
)
XLS = zlib.decompress(
    base64.b85decode(
        "c-"
        "rk)J!lj`6#i!Seq(+vF%c3Wgn&_F8qvZgSrs%k#wbEWgyeD=$dUCf*}JHhLZk6YL9kM60%>fbHvXW6b{0ZJ3qcSPEv*CvizM"
        "rtx4Y+^9+(3SM)oc9=FOXV-^}fMZ)R>^Ez~d0-"
        "fvmLPt*e)t9BHjBAuWT^%^lyzilhgt0PowpEeXlBjm_X5Kn4ehLsPMzn7rlUf?-#-"
        "~*L27)M_^CEM1K4)Pk}Lam`&1Ss}2+@?~CW?okV^91wF%<uBpr_A@W<{I;E8oMY?W5MX_+~>yeDXpFRYKaRxWSe)a*^MT=P;"
        "q?ex^Tt@allH(&406_HBgN?kmq`3N?LJq5sl=+IefL-fG=LIK5O&!>#G+a{kKwmxQzaW767JU4+#~Bc?!tA0VfSJlh!$z%cB"
        "lQcn=OEF`7;$WM&yt6w#m#fW~HX<C3aW{HzQDW_(zhv=3WyVlrvTk!m0#O_|6Js{A!6cqRyKU^JN+HFO{+GYUdp$Wl+1?E47"
        "DpgrD9X0n3{lk_GHJeHEgPo7U#sWX80j9AH@QNx*3O?-"
        "q_rsR6grx=|I%XdD%K04fQ46<gL&k5%=*`|IzY+P0rWL(QVI&;<2$rihqUt!d(EVnRkq%5Giqrb@&4$ttItK8c`^Xy@IV{9*"
        "ycaWU_bo^0k{-"
        "d#z<oVvEsmA%Y#w^<DbQ>Xi^~|74bctIx6+Je*TDbepd*;o*>_HJN=C0j#kIXu(po+zM=1xn!9Z_g$?z?hYI<<5cOO(M9j1_"
        "Rl3&si-S_&&vXeq3)i=~yp(ikh^j(5BkEwmICuT~3@tgw2t20Tzkw8Q?O^@|C81IL73HYPUxCMLWn(91>vr8h2WUKE5%qM)Y"
        "8?|NCkd)AI;s!IH>-a305<-F~aPd@qNlTSWvWD<PWaBf!W-W7E3ZejPk&I*-P|1-"
        "&dODB+~Crf`z4<SXhg<M7PvjsunVTm=`c;5>Z4bbcs#xTt57^^sb>FzCxf6tl?V}CA%DxH6|l6C&&`M(3-aT{s"
    )
)
"""An .xls file with one question of two choices and one free text; nothing here can write one."""
Table = Sequence[Sequence[Any]]


def workbook(**sheets: Table) -> bytes:
    """Return an .xlsx file with these sheets."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def form(*rows: Sequence[Any], choices: Table = CHOICES, header: Sequence[str] = SURVEY) -> bytes:
    """Return an XLSForm with these rows of the sheet survey."""
    return workbook(survey=[header, *rows], choices=choices)


def with_part(data: bytes, name: str, content: str) -> bytes:
    """Return a workbook with one part of its archive replaced."""
    changed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.namelist():
            new.writestr(part, content if part == name else old.read(part))
    return changed.getvalue()

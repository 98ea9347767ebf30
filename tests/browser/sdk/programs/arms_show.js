// SPDX-License-Identifier: Apache-2.0
/** Show the element; `first` are the bits that draw the arm. */
async ([link, at, first]) => {
  const [{FranklySurvey}, {withSeams}, {systemBits}] = await Promise.all(["element", "testing", "mechanisms"].map((name) => import(`/sdk/${name}.js`)));
  const survey = new FranklySurvey();
  let left = first;
  const randomBits = (bits) => {
    const number = left ?? systemBits(bits);
    left = null;
    return number;
  };
  survey.options = withSeams({spreadMs: 0, store: String(first)}, {now: () => at, randomBits});
  survey.setAttribute("link", link);
  document.querySelector("main").append(survey);
}

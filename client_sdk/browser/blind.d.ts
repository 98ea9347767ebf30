// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/blind`: tokens of an outside issuer (RFC 9474). */
import type { Survey } from "./frankly.d.ts";

/** A request for one token: send `blinded` to the issuer, and keep the other fields until the issuer has responded. */
export interface TokenRequest { readonly survey: string; readonly blinded: Uint8Array; readonly secret: Blinded; readonly rule: { kind: string; key: string | null }; }

/** Return a request for a token of a survey, or of one of its sources. */
export function blind(survey: Pick<Survey, "token" | "survey">, source?: string): Promise<TokenRequest>;
/** Return the token for `Client.answer`, after checking that the survey's server will accept it. */
export function finalize(request: TokenRequest, blindSignature: Uint8Array): Promise<string>;

/** The operations of RFC 9474, for any of its variants. */
export interface Variant { saltBytes: number; isRandomized: boolean; }
export interface Key { n: bigint; e: bigint; bits: number; verifier: CryptoKey; }
export interface Blinded { request: Uint8Array; prepared: Uint8Array; inverse: bigint; }
export const VARIANTS: Record<string, Variant>;
export function readKey(spki: Uint8Array): Promise<Key>;
export function prepare(message: Uint8Array, variant: Variant): Uint8Array;
export function blindMessage(key: Key, prepared: Uint8Array, variant: Variant): Promise<Blinded>;
export function blindWith(key: Pick<Key, "n" | "e" | "bits">, prepared: Uint8Array, salt: Uint8Array, r: bigint, inverse: bigint): Promise<Blinded>;
export function finalizeMessage(key: Key, blinded: Blinded, blindSignature: Uint8Array, variant: Variant): Promise<Uint8Array>;

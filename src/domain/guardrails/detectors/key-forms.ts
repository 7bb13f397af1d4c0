// The forms of API keys by their issuers, and the compiler of the notation they are written in: literal text, and
// `{class:count}` or `{class:min,max}` for characters of a class.

import { ALNUM, type ByteClass, classOf, DIGIT } from './characters.ts';

export interface KeyPart {
  readonly literal: Buffer | null;
  readonly characters: ByteClass;
  readonly min: number;
  readonly max: number;
}

export interface KeyForm {
  readonly issuer: string;
  readonly parts: readonly KeyPart[];
  /** The index in the first literal of the byte pair that the scan looks for. */
  readonly anchorAt: number;
  readonly longest: number;
}

const CLASSES: Readonly<Record<string, ByteClass>> = {
  a: ALNUM,
  w: classOf('A-Za-z0-9_\u002d'),
  b: classOf('A-Za-z0-9+/'),
  l: classOf('a-z0-9'),
  u: classOf('A-Z0-9'),
  /** Base 32, as AWS writes it. */
  '2': classOf('A-Z2-7'),
  h: classOf('0-9a-f'),
  H: classOf('0-9A-Fa-f'),
  d: DIGIT,
  /** Bech32 in upper case. */
  B: classOf('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L'),
  '=': classOf('='),
};

/** From each issuer's documentation, or from keys that it has issued. One row per form; an issuer may have several. */
const FORMS: readonly (readonly [issuer: string, form: string])[] = [
  ['adafruit', 'aio_{a:28}'],
  ['airtable', 'pat{a:14}.{h:64}'],
  ['alibaba', 'LTAI{a:17,21}'],
  ['anthropic', 'sk-ant-api03-{w:93}AA'],
  ['anthropic', 'sk-ant-admin01-{w:93}AA'],
  ['anthropic', 'sk-ant-oat01-{w:93}AA'],
  ['artifactory', 'AKCp{a:69}'],
  ['atlassian', 'ATATT3{w:180,200}={H:8}'],
  ['aws', 'AKIA{2:16}'],
  ['aws', 'ASIA{2:16}'],
  ['aws', 'ABIA{2:16}'],
  ['aws', 'ACCA{2:16}'],
  ['aws-bedrock', 'ABSK{b:109,269}{=:0,2}'],
  ['clojars', 'CLOJARS_{l:60}'],
  ['databricks', 'dapi{h:32}'],
  ['defined-networking', 'dnkey-{w:26}-{w:52}'],
  ['digitalocean', 'dop_v1_{h:64}'],
  ['digitalocean', 'doo_v1_{h:64}'],
  ['digitalocean', 'dor_v1_{h:64}'],
  ['doppler', 'dp.pt.{a:43}'],
  ['duffel', 'duffel_live_{w:43}'],
  ['duffel', 'duffel_test_{w:43}'],
  ['dynatrace', 'dt0c01.{u:24}.{u:64}'],
  ['easypost', 'EZAK{a:54}'],
  ['easypost', 'EZTK{a:54}'],
  ['figma', 'figd_{w:40,60}'],
  ['flutterwave', 'FLWSECK_TEST-{H:12,32}'],
  ['fly', 'fo1_{w:43}'],
  ['frame-io', 'fio-u-{w:64}'],
  ['github', 'ghp_{a:36}'],
  ['github', 'gho_{a:36}'],
  ['github', 'ghu_{a:36}'],
  ['github', 'ghs_{a:36}'],
  ['github', 'ghr_{a:36}'],
  ['github', 'github_pat_{a:22}_{a:59}'],
  ['gitlab', 'glpat-{w:20,64}'],
  ['gitlab', 'gldt-{w:20}'],
  ['gitlab', 'glrt-{w:20,64}'],
  ['gitlab', 'glptt-{h:40}'],
  ['gitlab', 'glcbt-{a:1,5}_{w:20}'],
  ['google', 'AIza{w:35}'],
  ['grafana', 'glc_{b:32,400}{=:0,3}'],
  ['grafana', 'glsa_{a:32}_{H:8}'],
  ['groq', 'gsk_{a:52}'],
  ['harness', 'pat.{w:22}.{H:24}.{a:20}'],
  ['hashicorp-vault', 'hvs.{w:90,120}'],
  ['hashicorp-vault', 'hvb.{w:138,212}'],
  ['huggingface', 'hf_{a:34}'],
  ['huggingface', 'api_org_{a:34}'],
  ['linear', 'lin_api_{a:40}'],
  ['mailgun', 'key-{h:32}'],
  ['mapbox', 'pk.{a:60}.{a:22}'],
  ['new-relic', 'NRAK-{u:27}'],
  ['new-relic', 'NRJS-{h:19}'],
  ['notion', 'ntn_{d:11}{a:35}'],
  ['npm', 'npm_{a:36}'],
  ['octopus', 'API-{u:26}'],
  ['openai', 'sk-{a:20}T3BlbkFJ{a:20}'],
  ['openai', 'sk-proj-{w:74}T3BlbkFJ{w:74}'],
  ['openai', 'sk-proj-{w:58}T3BlbkFJ{w:58}'],
  ['openai', 'sk-svcacct-{w:74}T3BlbkFJ{w:74}'],
  ['openai', 'sk-svcacct-{w:58}T3BlbkFJ{w:58}'],
  ['openai', 'sk-admin-{w:74}T3BlbkFJ{w:74}'],
  ['openai', 'sk-admin-{w:58}T3BlbkFJ{w:58}'],
  ['openrouter', 'sk-or-v1-{h:64}'],
  ['openshift', 'sha256~{w:43}'],
  ['perplexity', 'pplx-{a:48}'],
  ['planetscale', 'pscale_tkn_{w:32,64}'],
  ['planetscale', 'pscale_pw_{w:32,64}'],
  ['planetscale', 'pscale_oauth_{w:32,64}'],
  ['postman', 'PMAK-{H:24}-{H:34}'],
  ['prefect', 'pnu_{l:36}'],
  ['pulumi', 'pul-{h:40}'],
  ['pypi', 'pypi-AgEIcHlwaS5vcmc{w:50,400}'],
  ['readme', 'rdme_{l:70}'],
  ['replicate', 'r8_{a:37}'],
  ['rubygems', 'rubygems_{h:48}'],
  ['scalingo', 'tk-us-{w:48}'],
  ['sendgrid', 'SG.{w:22}.{w:43}'],
  ['sendinblue', 'xkeysib-{h:64}-{a:16}'],
  ['sentry', 'sntryu_{h:64}'],
  ['shippo', 'shippo_live_{H:40}'],
  ['shippo', 'shippo_test_{H:40}'],
  ['shopify', 'shpat_{H:32}'],
  ['shopify', 'shpca_{H:32}'],
  ['shopify', 'shppa_{H:32}'],
  ['shopify', 'shpss_{H:32}'],
  ['slack', 'xoxb-{d:10,13}-{d:10,13}-{a:23,26}'],
  ['slack', 'xoxb-{d:8,14}-{a:18,26}'],
  ['slack', 'xoxp-{d:10,13}-{d:10,13}-{d:10,13}-{a:28,34}'],
  ['slack', 'xoxe-{d:1}-{u:143,147}'],
  ['slack', 'xoxe.xoxp-{d:1}-{u:163,166}'],
  ['slack', 'xapp-{d:1}-{u:9,13}-{d:9,15}-{l:60,70}'],
  ['slack', 'hooks.slack.com/services/T{u:8,12}/B{u:8,12}/{a:23,26}'],
  ['square', 'sq0atp-{w:22,60}'],
  ['square', 'sq0csp-{w:43}'],
  ['square', 'EAAA{w:60}'],
  ['stripe', 'sk_live_{a:10,99}'],
  ['stripe', 'sk_test_{a:10,99}'],
  ['stripe', 'rk_live_{a:10,99}'],
  ['stripe', 'rk_test_{a:10,99}'],
  ['stripe', 'whsec_{a:32,64}'],
  ['telegram', ':AA{w:33}'],
  ['tollgate', 'tg-{w:32,64}'],
  ['twilio', 'SK{h:32}'],
  ['typeform', 'tfp_{w:40}_{w:14,20}'],
  ['xai', 'xai-{a:80}'],
  ['yandex', 'AQVN{w:35,38}'],
  ['yandex', 'YCAJE{w:20}'],
];

function compileForm([issuer, form]: (typeof FORMS)[number]): KeyForm {
  const parts = [...form.matchAll(/\{(.):(\d+)(?:,(\d+))?\}|[^{]+/g)].map(([text, name, min, max]): KeyPart => {
    if (name === undefined)
      return { literal: Buffer.from(text), characters: ALNUM, min: text.length, max: text.length };
    return { literal: null, characters: CLASSES[name] as ByteClass, min: Number(min), max: Number(max ?? min) };
  });
  const longest = parts.reduce((sum, part) => sum + part.max, 0);
  return { issuer, parts, anchorAt: rarestPair((parts[0] as KeyPart).literal as Buffer), longest };
}

/**
 * Pairs of lower-case letters are everywhere in text, so the scan looks for the pair of a prefix that is least like a
 * word.
 */
function rarestPair(prefix: Buffer): number {
  let best = 0;
  for (let index = 0; index + 1 < prefix.length; index += 1) {
    if (rarity(prefix, index) > rarity(prefix, best)) best = index;
  }
  return best;
}

function rarity(prefix: Buffer, at: number): number {
  return (RARITY[prefix[at] as number] as number) + (RARITY[prefix[at + 1] as number] as number);
}

const RARITY = new Uint8Array(256).fill(4);
for (const byte of Buffer.from('abcdefghijklmnopqrstuvwxyz')) RARITY[byte] = 1;
for (const byte of Buffer.from('jkqxzv')) RARITY[byte] = 2;
for (const byte of Buffer.from('./:=')) RARITY[byte] = 2;
for (const byte of Buffer.from('_-')) RARITY[byte] = 3;
for (const byte of Buffer.from('0123456789')) RARITY[byte] = 3;

export const KEY_FORMS: readonly KeyForm[] = FORMS.map(compileForm);

// The table of built-in entities: what each is called, whether a placeholder can stand for it, and which letter its
// placeholders carry.

interface EntityRow {
  /** The kind letter of its placeholders (`TG` + letter + 12 digits). */
  readonly letter: string;
  /** Its value is the same in upper and lower case. */
  readonly ignoresCase: boolean;
  /** Spaces and punctuation between the parts of its value do not matter. */
  readonly ignoresSeparators: boolean;
}

const EXACT = { ignoresCase: false, ignoresSeparators: false } as const;
const NUMBER = { ignoresCase: true, ignoresSeparators: true } as const;

export const ENTITIES = {
  email: { letter: 'E', ignoresCase: true, ignoresSeparators: false },
  card: { letter: 'C', ...NUMBER },
  iban: { letter: 'B', ...NUMBER },
  phone: { letter: 'P', ...NUMBER },
  us_ssn: { letter: 'S', ...NUMBER },
  api_key: { letter: 'K', ...EXACT },
  jwt: { letter: 'J', ...EXACT },
  private_key: { letter: 'R', ...EXACT },
  url_password: { letter: 'U', ...EXACT },
  wallet_key: { letter: 'W', ...EXACT },
  wallet_address: { letter: 'A', ...EXACT },
  seed_phrase: { letter: 'M', ignoresCase: true, ignoresSeparators: false },
  ip: { letter: 'I', ignoresCase: true, ignoresSeparators: false },
  br_cpf: { letter: 'N', ...NUMBER },
  de_tax_id: { letter: 'N', ...NUMBER },
  es_nie: { letter: 'N', ...NUMBER },
  es_nif: { letter: 'N', ...NUMBER },
  fi_hetu: { letter: 'N', ignoresCase: true, ignoresSeparators: false },
  fr_nir: { letter: 'N', ...NUMBER },
  in_aadhaar: { letter: 'N', ...NUMBER },
  it_fiscal_code: { letter: 'N', ...NUMBER },
  pl_pesel: { letter: 'N', ...NUMBER },
  uk_nhs: { letter: 'N', ...NUMBER },
  uk_nino: { letter: 'N', ...NUMBER },
  us_itin: { letter: 'N', ...NUMBER },
} as const satisfies Record<string, EntityRow>;

export type EntityName = keyof typeof ENTITIES;
export const ENTITY_NAMES = Object.keys(ENTITIES) as EntityName[];

/** The entities of a rule's own words and patterns. Those of external detectors have the detectors' own names. */
export const OWN_ENTITIES = { words: 'words', pattern: 'pattern' } as const;

/** The letter of entities without a row: words, patterns, and what external detectors find. */
const OTHER_LETTER = 'X';

/** Which kind letter the placeholders of an entity carry. */
export function kindLetterOf(entity: string): string {
  return Object.hasOwn(ENTITIES, entity) ? ENTITIES[entity as EntityName].letter : OTHER_LETTER;
}

/** The value that two spellings share, so that they get one placeholder: `4111 1111 …` and `4111-1111-…`. */
export function normalizedValue(entity: string, text: string): string {
  if (!Object.hasOwn(ENTITIES, entity)) return text.normalize('NFC');
  const { ignoresCase, ignoresSeparators } = ENTITIES[entity as EntityName];
  const joined = ignoresSeparators ? text.replaceAll(/[^0-9A-Za-z]/g, '') : text;
  return ignoresCase ? joined.toLowerCase() : joined;
}

/** False: the entity's name is an external detector's own. */
export function isBuiltIn(entity: string): boolean {
  return Object.hasOwn(ENTITIES, entity) || entity === OWN_ENTITIES.words || entity === OWN_ENTITIES.pattern;
}

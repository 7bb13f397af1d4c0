// Asks providers again about own keys that they refused, outside of requests. A key that is refused again becomes
// invalid everywhere; a key that is accepted is used again. Each gateway asks about the keys that it claims, so that
// each key is asked about once. jobs says when keys are due, and thus needs no keys.

import type { Catalog } from '../../domain/models/catalog.ts';
import type { OwnKeyReference } from '../../domain/own-keys/key-changes.ts';
import { isKeyProblem, ownProvider, secretNeededFor } from '../../domain/own-keys/key-kinds.ts';
import { isRefused } from '../../domain/refusals/refused.ts';
import type { OwnKeyUse } from '../../generation/catalog/serving-catalog.ts';
import type { Log } from '../../platform/log.ts';
import { coolOwnKeyDown, recordVerdict, suspectOwnKey } from '../../storage/postgres/own-keys/key-states.ts';
import { claimKeysToCheck, recordNoVerdict } from '../../storage/postgres/own-keys/keys-to-check.ts';
import { openOwnKey } from '../../storage/postgres/own-keys/own-keys.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import type { SecretBox } from '../../storage/postgres/secret-box.ts';
import type { OwnKeyVerifier } from '../../upstream/own-key-verifier.ts';

/** How many keys are asked about at once. Each has its answer or has run out of time before the claim ends. */
const CLAIMED_MAX = 8;
/**
 * How many of them may be one organization's: if none of its providers answers, half of the places are left to others.
 */
const SHARE_MAX = 4;
const ACTOR = { kind: 'cli', userId: null, label: 'check of refused keys' } as const;

export interface OwnKeyChecksParts {
  readonly postgres: Postgres;
  readonly box: SecretBox;
  readonly catalog: { readonly present: Catalog };
  readonly verifier: OwnKeyVerifier;
  readonly log: Log;
}

export class OwnKeyChecks {
  private readonly parts: OwnKeyChecksParts;
  private isUnderWay = false;
  /** Keys have become due since they were claimed last. */
  private isDueAgain = false;
  private isStopping = false;

  constructor(parts: OwnKeyChecksParts) {
    this.parts = parts;
  }

  /** A provider has refused the key in a request. If the refusal cannot be stored, the next one is. */
  refused({ keyId, organizationId }: OwnKeyUse): void {
    const { postgres, log } = this.parts;
    log.warn({ credential_id: keyId, organization_id: organizationId }, 'a provider refuses an own key');
    suspectOwnKey(postgres, keyId).then(
      (isNew) => {
        if (isNew) this.start();
      },
      (fault: unknown) => log.warn({ err: fault, credential_id: keyId }, 'the refusal of a key could not be stored'),
    );
  }

  /**
   * A key's account has no credit or quota left. Other processes learn this when they read the keys, within a minute.
   */
  spent(key: OwnKeyUse, restsMs: number): void {
    const { postgres, log } = this.parts;
    coolOwnKeyDown(postgres, ACTOR, key, restsMs).catch((fault: unknown) =>
      log.warn({ err: fault, credential_id: key.keyId }, 'the pause of a key could not be stored'),
    );
  }

  /** Checks the keys that are due. */
  start(): void {
    this.isDueAgain = true;
    if (this.isUnderWay || this.isStopping) return;
    this.isUnderWay = true;
    this.checkAll()
      .catch((fault: unknown) => this.parts.log.warn({ err: fault }, 'own keys that are due could not be claimed'))
      .finally(() => {
        this.isUnderWay = false;
        if (this.isDueAgain) this.start();
      });
  }

  /** Answers of providers are not recorded from now on: the claim ends, and another process asks. */
  stop(): void {
    this.isStopping = true;
  }

  private async checkAll(): Promise<void> {
    while (this.isDueAgain && !this.isStopping) {
      this.isDueAgain = false;
      const claimed = await claimKeysToCheck(this.parts.postgres, { max: CLAIMED_MAX, shareMax: SHARE_MAX });
      if (claimed.length > 0) this.isDueAgain = true;
      await Promise.all(claimed.map((reference) => this.check(reference)));
    }
  }

  private async check(reference: OwnKeyReference): Promise<void> {
    const { log } = this.parts;
    try {
      await this.ask(reference);
    } catch (fault) {
      if (!this.isStopping) log.warn({ err: fault, credential_id: reference.keyId }, 'an own key could not be checked');
    }
  }

  private async ask(reference: OwnKeyReference): Promise<void> {
    const { postgres, box, catalog, verifier, log } = this.parts;
    const opened = await openOwnKey(postgres, { box }, reference);
    const own = isRefused(opened) ? null : ownProvider(catalog.present, opened.key.kind, opened.key);
    if (isRefused(opened) || own === null || isKeyProblem(own) || secretNeededFor(opened.key, own) !== null)
      return recordNoVerdict(postgres, reference);
    const verdict = await verifier.verify(own, opened.secret);
    if (this.isStopping) return;
    // A provider that cannot answer now says nothing about the key.
    if (verdict === null || verdict.state === 'unverified') return recordNoVerdict(postgres, reference);
    await recordVerdict(postgres, ACTOR, reference, { verdict, generation: opened.generation });
    const { state: before } = opened.key;
    if (verdict.state === before) return;
    log.info(
      { credential_id: reference.keyId, before, after: verdict.state },
      'the state of an own provider key has changed',
    );
  }
}

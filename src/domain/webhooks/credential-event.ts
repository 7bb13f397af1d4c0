// What a webhook tells of an organization's own provider key: that its provider does not accept it, or accepts it
// again. Nothing of the secret is in it, nor of its end.

import type { OwnKey } from '../own-keys/own-key.ts';

export interface CredentialEvent {
  readonly type: 'credential.invalid' | 'credential.recovered';
  readonly data: Readonly<Record<string, string | null>>;
}

/** null: a change of state that nobody waits to hear of. */
export function credentialEvent(before: Pick<OwnKey, 'state'>, after: OwnKey): CredentialEvent | null {
  if ((before.state === 'invalid') === (after.state === 'invalid') || after.state === 'disabled') return null;
  const { id, kind, name, state, stateReason } = after;
  return {
    type: state === 'invalid' ? 'credential.invalid' : 'credential.recovered',
    data: { credential_id: id, kind, name, state, state_reason: stateReason },
  };
}

// The webhook message about an organization's own provider key: its provider does not accept it, or accepts it again.
// It contains no part of the secret, not even its end.

import type { OwnKey } from '../own-keys/own-key.ts';

export interface CredentialEvent {
  readonly type: 'credential.invalid' | 'credential.recovered';
  readonly data: Readonly<Record<string, string | null>>;
}

/** null: the change of state is not reported. */
export function credentialEvent(before: Pick<OwnKey, 'state'>, after: OwnKey): CredentialEvent | null {
  if ((before.state === 'invalid') === (after.state === 'invalid') || after.state === 'disabled') return null;
  const { id, kind, name, state, stateReason } = after;
  return {
    type: state === 'invalid' ? 'credential.invalid' : 'credential.recovered',
    data: { credential_id: id, kind, name, state, state_reason: stateReason },
  };
}

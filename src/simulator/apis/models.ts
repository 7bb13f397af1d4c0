// The simulated provider's models: those that GET /v1/models lists, and the names that a call may use.

const MODEL_IDS: readonly string[] = ['small-2026-05-01', 'large-2026-05-01', 'sim-small', 'sim-large'];

/** Any name is served unless it begins with `unknown`, so that a configuration can have as many models as it needs. */
export function isKnownModel(model: string): boolean {
  return !model.startsWith('unknown');
}

export function renderModels(): string {
  const data = MODEL_IDS.map((id) => ({ id, object: 'model', created: 1_700_000_000, owned_by: 'simulator' }));
  return JSON.stringify({ object: 'list', data });
}

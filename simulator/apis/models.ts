// The simulated provider's models: what GET /v1/models lists, and which names a call may use.

export const MODEL_IDS: readonly string[] = ['sim-small', 'sim-medium', 'sim-large', 'sim-mini', 'sim-pro'];

/** Every name that begins with `sim-` is served, so that a configuration may invent as many models as it needs; the rest are unknown. */
export function isKnownModel(model: string): boolean {
  return model.startsWith('sim-');
}

export function renderModels(): string {
  const data = MODEL_IDS.map((id) => ({ id, object: 'model', created: 1_700_000_000, owned_by: 'simulator' }));
  return JSON.stringify({ object: 'list', data });
}

// Names the client that calls providers in this run: `UPSTREAM_CLIENT=undici` runs a suite over undici instead of our
// own.

export const UPSTREAM_CLIENT = process.env['UPSTREAM_CLIENT'] === 'undici' ? 'undici' : 'own';

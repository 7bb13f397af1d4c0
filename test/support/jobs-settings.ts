// The settings of a test's jobs process besides its databases.

import { NO_PROXIES } from '../../src/upstream/proxy-of.ts';

export const JOBS_SETTINGS = {
  masterKey: Buffer.alloc(32, 1),
  previousMasterKeys: [],
  webhookAllowHttp: false,
  webhookAllowPrivate: false,
  egressAllow: [],
  upstreamClient: 'own' as const,
  factsRetentionDays: null,
  media: null,
  delegationKey: Buffer.alloc(32, 2),
  proxies: NO_PROXIES,
  brand: 'Service',
  observing: { accessLog: false, traces: null },
};

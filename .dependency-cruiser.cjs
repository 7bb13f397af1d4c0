// Who may import whom: the layers of ARCHITECTURE.md as rules. test/house tries a breach of each.

const PLANES = '^src/(generation|control-plane)/';
const COMPOSITION = '^src/(commands|gateway|installation|routes|supervisor)/|^src/main\\.ts$';

/** The files of `folder` import, of our own folders, only itself and the `others`. */
function knowsOnly(name, folder, others, comment) {
  const known = [folder, ...others.map((other) => `src/${other}`)].join('|');
  const to = { path: '^(src|jobs|workers|build|test|benchmarks)/', pathNot: `^(${known})/` };
  return { name, comment, severity: 'error', from: { path: `^${folder}/` }, to };
}

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'nor by type alone: whoever reads one file of a circle has to read all of them',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    knowsOnly(
      'domain-is-a-leaf',
      'src/domain',
      ['platform'],
      'rules know neither who calls them nor where things are kept',
    ),
    knowsOnly(
      'records-are-a-leaf',
      'src/records',
      ['domain', 'platform'],
      'what gateways write and jobs read: one table of fields, known to both and knowing neither',
    ),
    knowsOnly(
      'upstream-knows-no-request',
      'src/upstream',
      ['domain', 'platform'],
      'a call to a provider is given a body and a credential; whose they are is not its concern',
    ),
    {
      name: 'domain-does-no-io',
      comment: 'status-line takes the table of reason phrases from node:http, and nothing that opens a socket',
      severity: 'error',
      from: { path: '^src/domain/', pathNot: '^src/domain/refusals/status-line\\.ts$' },
      to: {
        dependencyTypes: ['core'],
        path: '^(node:)?(fs|net|tls|http|http2|https|dgram|dns|child_process|cluster|worker_threads)(/|$)',
      },
    },
    knowsOnly(
      'platform-is-below-all',
      'src/platform',
      [],
      'clock, ids, log, metrics, pools: every process stands on them',
    ),
    {
      name: 'planes-apart',
      comment: 'generation requests and the control plane never import each other',
      severity: 'error',
      from: { path: PLANES },
      to: { path: PLANES, pathNot: '^src/$1/' },
    },
    {
      name: 'only-roots-know-the-planes',
      comment: 'commands, gateway, supervisor, main and routes put the planes together; nothing else reaches into them',
      severity: 'error',
      from: { path: '^(src|jobs|workers)/', pathNot: `${PLANES}|${COMPOSITION}` },
      to: { path: PLANES },
    },
    {
      name: 'nothing-imports-the-roots',
      severity: 'error',
      from: { path: '^(src|jobs|workers)/', pathNot: COMPOSITION },
      to: { path: COMPOSITION },
    },
    {
      name: 'installation-knows-no-process',
      comment: 'directory, lock, secrets and addresses are the same whoever runs on them, and whatever it serves',
      severity: 'error',
      from: { path: '^src/installation/' },
      to: { path: '^src/(commands|control-plane|gateway|generation|http|routes|supervisor|upstream)/' },
    },
    {
      name: 'only-storage-talks-to-databases',
      severity: 'error',
      from: { pathNot: '^(src/storage|test)/' },
      to: { path: '(^|/)(pg|@clickhouse/client|chdb)(/|$)' },
    },
    knowsOnly(
      'storage-knows-the-domain-only',
      'src/storage',
      ['records', 'domain', 'platform'],
      'statements and files; who asks is not its concern',
    ),
    {
      name: 'only-http-knows-uws',
      comment: 'benchmarks measure the bare server beside ours',
      severity: 'error',
      from: { pathNot: '^(src/http|benchmarks)/' },
      to: { path: 'uWebSockets\\.js' },
    },
    {
      name: 'only-commands-know-listed-prices',
      comment: 'numbers of a list go into a file, where people see them; nothing changes a price at run time',
      severity: 'error',
      from: { pathNot: '^src/commands/' },
      to: { path: '(^|/)@pydantic/genai-prices(/|$)' },
    },
    knowsOnly('http-knows-no-plane', 'src/http', ['domain', 'platform'], 'an exchange is the same whatever is asked'),
    {
      name: 'no-analytics-in-a-request',
      comment: 'a generation never waits for ClickHouse',
      severity: 'error',
      from: { path: '^src/(generation|upstream)/' },
      to: { path: '^src/storage/clickhouse/', reachable: true },
    },
    knowsOnly('workers-are-pure', 'workers', ['domain', 'platform'], 'a task is a function over plain data'),
    {
      name: 'jobs-stand-on-storage',
      severity: 'error',
      from: { path: '^jobs/' },
      to: {
        path: '^(src|workers)/',
        pathNot:
          '^src/(domain|records|storage|upstream|platform)/|^src/(config|observing-settings|reports-settings)\\.ts$',
      },
    },
    knowsOnly(
      'simulator-stands-alone',
      'src/simulator',
      [],
      'what it knew of the product it would repeat instead of testing it',
    ),
    knowsOnly(
      'console-stands-alone',
      'src/console',
      [],
      'the browser application asks the gateway over HTTP and shares no code with it',
    ),
    {
      name: 'nothing-imports-the-console',
      comment: 'its logic is tested without a browser; a gateway serves what was built',
      severity: 'error',
      from: { path: '^(src|jobs|workers|benchmarks|bin)/', pathNot: '^src/console/' },
      to: { path: '^src/console/' },
    },
    knowsOnly(
      'load-stands-alone',
      'src/load',
      ['platform'],
      'a load treats every target alike: what it knew of this product would favour it',
    ),
    knowsOnly(
      'connect-stands-alone',
      'src/connect',
      ['platform'],
      'what is written into the settings of other tools is asked of the gateway, as any client would',
    ),
    {
      name: 'not-to-test',
      severity: 'error',
      from: { path: '^(src|jobs|workers|bin)/', pathNot: '^src/simulator/' },
      to: { path: '^(test|benchmarks)/|^src/simulator/' },
    },
    {
      name: 'no-orphans',
      comment: 'worker tasks are found by file name',
      severity: 'error',
      from: { orphan: true, pathNot: '\\.d\\.ts$|^workers/|^test/support/worker-tasks/' },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '\\.as\\.ts$|^benchmarks/peers|^src/console/built' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.tsx', '.js', '.cjs', '.json'] },
  },
};

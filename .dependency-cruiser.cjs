// Who may import whom: the layers of ARCHITECTURE.md as rules. test/house tries a breach of each.

const PLANES = '^src/(generation|control-plane)/';
const COMPOSITION = '^src/(commands|gateway|routes|supervisor)/|^src/main\\.ts$';

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
    {
      name: 'domain-is-a-leaf',
      comment: 'rules know neither who calls them nor where things are kept',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { path: '^(src|jobs|workers)/', pathNot: '^src/(domain|platform)/' },
    },
    {
      name: 'records-are-a-leaf',
      comment: 'what gateways write and jobs read: one table of fields, known to both and knowing neither',
      severity: 'error',
      from: { path: '^src/records/' },
      to: { path: '^(src|jobs|workers)/', pathNot: '^src/(records|domain|platform)/' },
    },
    {
      name: 'upstream-knows-no-request',
      comment: 'a call to a provider is given a body and a credential; whose they are is not its concern',
      severity: 'error',
      from: { path: '^src/upstream/' },
      to: { path: '^(src|jobs|workers)/', pathNot: '^src/(upstream|domain|platform)/' },
    },
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
    {
      name: 'platform-is-below-all',
      severity: 'error',
      from: { path: '^src/platform/' },
      to: { path: '^(src|jobs)/', pathNot: '^src/platform/' },
    },
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
      name: 'only-storage-talks-to-databases',
      severity: 'error',
      from: { pathNot: '^(src/storage|test)/' },
      to: { path: '(^|/)(pg|@clickhouse/client|chdb)(/|$)' },
    },
    {
      name: 'storage-knows-the-domain-only',
      severity: 'error',
      from: { path: '^src/storage/' },
      to: { path: '^(src|jobs)/', pathNot: '^src/(storage|records|domain|platform)/' },
    },
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
    {
      name: 'http-knows-no-plane',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^(src|jobs)/', pathNot: '^src/(http|domain|platform)/' },
    },
    {
      name: 'no-analytics-in-a-request',
      comment: 'a generation never waits for ClickHouse',
      severity: 'error',
      from: { path: '^src/(generation|upstream)/' },
      to: { path: '^src/storage/clickhouse/', reachable: true },
    },
    {
      name: 'workers-are-pure',
      severity: 'error',
      from: { path: '^workers/' },
      to: { path: '^(src|jobs)/', pathNot: '^src/(domain|platform)/' },
    },
    {
      name: 'jobs-stand-on-storage',
      severity: 'error',
      from: { path: '^jobs/' },
      to: { path: '^(src|workers)/', pathNot: '^src/(domain|records|storage|upstream|platform)/|^src/config\\.ts$' },
    },
    {
      name: 'simulator-stands-alone',
      severity: 'error',
      from: { path: '^src/simulator/' },
      to: { path: '^(src|jobs|workers|test|benchmarks)/', pathNot: '^src/simulator/' },
    },
    {
      name: 'console-stands-alone',
      comment: 'the browser application asks the gateway over HTTP and shares no code with it',
      severity: 'error',
      from: { path: '^src/console/' },
      to: { path: '^(src|jobs|workers|test|benchmarks|build)/', pathNot: '^src/console/' },
    },
    {
      name: 'nothing-imports-the-console',
      comment: 'its logic is tested without a browser; a gateway serves what was built',
      severity: 'error',
      from: { path: '^(src|jobs|workers|benchmarks|bin)/', pathNot: '^src/console/' },
      to: { path: '^src/console/' },
    },
    {
      name: 'load-stands-alone',
      comment: 'a load treats every target alike: what it knew of this product would favour it',
      severity: 'error',
      from: { path: '^src/load/' },
      to: { path: '^(src|jobs|workers)/', pathNot: '^src/(load|platform)/' },
    },
    {
      name: 'connect-stands-alone',
      comment: 'what is written into the settings of other tools is asked of the gateway, as any client would',
      severity: 'error',
      from: { path: '^src/connect/' },
      to: { path: '^(src|jobs|workers)/', pathNot: '^src/(connect|platform)/' },
    },
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

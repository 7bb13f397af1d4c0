// What a process knows of saved responses: what it relayed itself at once, what others relayed when the store has it
// (spec 4.2, 5.4).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type SavedItem,
  type SavedResponse,
  type SavedResponseAnswer,
  type SavedResponseOwner,
  SavedResponses,
} from '../../src/generation/catalog/saved-responses.ts';

const OWNER = { organizationId: 'acme', walletId: 'wallet' };
const SAVED: SavedResponse = { provider: 'sim', ownKeyId: null, model: 'sim/large', inputTokens: 1, outputTokens: 2 };

/** Saved responses before a store that gives these answers, the last of them from then on; `asked` counts. */
function before(
  answers: readonly SavedResponseAnswer[],
  onAsked: (saved: SavedResponses) => void = () => {},
  postingPassed: () => Promise<boolean> = async () => true,
) {
  const store = { asked: 0 };
  const findResponse = async (): Promise<SavedResponseAnswer> => {
    const answer = answers[Math.min(store.asked++, answers.length - 1)] ?? 'unknown';
    onAsked(saved);
    return answer;
  };
  const saved: SavedResponses = new SavedResponses({ findResponse, findItems: async () => new Map(), postingPassed });
  return { saved, store };
}

test('what this process relayed is found without the store, by its owner alone', async () => {
  const { saved, store } = before(['foreign']);
  saved.remember(OWNER, 'resp_1', SAVED);
  assert.equal(await saved.find(OWNER, 'resp_1'), SAVED);
  assert.equal(store.asked, 0);
  assert.equal(await saved.find({ ...OWNER, walletId: null }, 'resp_1'), 'foreign');
  assert.equal(await saved.find({ ...OWNER, organizationId: 'other' }, 'resp_1'), 'foreign');
  assert.equal(store.asked, 2);
});

test('an id that is not kept is unknown, whatever a process knows, and the store is not asked', async () => {
  const { saved, store } = before([SAVED]);
  for (const id of ['', 'r'.repeat(257), 'resp 1', 'resp/1', '..%2fmodels', 'resp_\u00e4', 'a"b', 'a\\b']) {
    saved.remember(OWNER, id, SAVED);
    assert.equal(await saved.find(OWNER, id), 'unknown', id);
  }
  assert.equal(store.asked, 0);
});

test('what another process relayed a moment ago is looked up again when it is posted', async () => {
  const { saved, store } = before(['unknown', SAVED]);
  assert.equal(await saved.find(OWNER, 'resp_1'), SAVED);
  assert.equal(store.asked, 2);
});

test('while what was recorded is not posted, nothing is said to be unknown', async () => {
  const { saved, store } = before(['unknown'], undefined, async () => false);
  assert.equal(await saved.find(OWNER, 'resp_1'), 'unposted');
  assert.equal(store.asked, 1);
});

test('ids that wait for postings keep no other look-up of their organization waiting', async () => {
  const { promise: posted, resolve: post } = Promise.withResolvers<boolean>();
  const findResponse = async (_: SavedResponseOwner, id: string): Promise<SavedResponseAnswer> =>
    id === 'resp_1' ? SAVED : 'unknown';
  const saved = new SavedResponses({ findResponse, findItems: async () => new Map(), postingPassed: () => posted });
  const flood = Array.from({ length: 100 }, (_, index) => saved.find(OWNER, `resp_made_up_${index}`));
  assert.equal(await saved.find(OWNER, 'resp_1'), SAVED);
  post(true);
  assert.deepEqual(new Set(await Promise.all(flood)), new Set(['unknown']));
});

test('what this process relayed while the store was asked is found without asking again', async () => {
  const { saved, store } = before(['unknown'], (known) => known.remember(OWNER, 'resp_1', SAVED));
  assert.equal(await saved.find(OWNER, 'resp_1'), SAVED);
  assert.equal(store.asked, 1);
});

test('what nobody relayed is unknown once everything is posted', async () => {
  const { saved, store } = before(['unknown']);
  assert.equal(await saved.find(OWNER, 'resp_1'), 'unknown');
  assert.equal(store.asked, 2);
});

test('ids that one organization makes up are looked up two at a time, some wait, and others’ are found at once', async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  let asked = 0;
  const findResponse = async ({ organizationId }: SavedResponseOwner): Promise<SavedResponseAnswer> => {
    if (organizationId === 'other') return SAVED;
    asked += 1;
    await opened;
    return 'foreign';
  };
  const saved = new SavedResponses({
    findResponse,
    findItems: async () => new Map(),
    postingPassed: async () => true,
  });
  const flood = Array.from({ length: 500 }, (_, index) => saved.find(OWNER, `resp_made_up_${index}`));
  assert.equal(asked, 2);
  assert.equal(await saved.find({ organizationId: 'other', walletId: null }, 'resp_1'), SAVED);
  // What waits is 100; the rest is refused at once, and never taken for an id that nobody knows.
  assert.equal(await flood[499], 'unavailable');
  open();
  const answers = await Promise.all(flood);
  assert.deepEqual(
    ['unavailable', 'foreign'].map((wanted) => answers.filter((answer) => answer === wanted).length),
    [398, 102],
  );
});

test('a store that cannot be asked says nothing of an id, and its fault is told', async () => {
  const faults: unknown[] = [];
  const away = async (): Promise<never> => Promise.reject(new Error('away'));
  const store = { findResponse: away, findItems: away, postingPassed: async () => true };
  const saved = new SavedResponses(store, (fault) => faults.push(fault));
  assert.equal(await saved.find(OWNER, 'resp_1'), 'unavailable');
  assert.equal(await saved.findItems(OWNER, ['msg_1']), 'unavailable');
  assert.equal(faults.length, 2);
});

describe('items of responses', () => {
  const ITEM: SavedItem = { provider: 'sim', ownKeyId: null, responseId: 'resp_1', outputTokens: 2 };

  /** Before a store that has these, the last of them from then on; `asked`: for which ids. */
  function beforeItems(answers: readonly (readonly string[])[]) {
    const asked: (readonly string[])[] = [];
    const findItems = async (
      _owner: SavedResponseOwner,
      itemIds: readonly string[],
    ): Promise<ReadonlyMap<string, SavedItem>> => {
      const there = answers[Math.min(asked.length, answers.length - 1)] ?? [];
      asked.push(itemIds);
      return new Map(itemIds.filter((itemId) => there.includes(itemId)).map((itemId) => [itemId, ITEM]));
    };
    const saved = new SavedResponses({
      findResponse: async () => 'unknown',
      findItems,
      postingPassed: async () => true,
    });
    return { saved, asked };
  }

  test('that this process relayed are found without the store, by their owner alone', async () => {
    const { saved, asked } = beforeItems([[]]);
    for (const itemId of ['rs_1', 'msg_1']) saved.rememberItem(OWNER, itemId, ITEM);
    assert.deepEqual(await saved.findItems(OWNER, ['rs_1', 'msg_1']), [ITEM, ITEM]);
    assert.deepEqual(asked, []);
    assert.equal(await saved.findItems({ ...OWNER, walletId: null }, ['rs_1']), 'unknown');
    assert.equal(await saved.findItems({ ...OWNER, organizationId: 'other' }, ['rs_1']), 'unknown');
    assert.equal(await saved.find(OWNER, 'rs_1'), 'unknown', 'an item is no response');
  });

  test('that another process relayed a moment ago are looked up when they are posted, and then remembered', async () => {
    const { saved, asked } = beforeItems([['rs_1'], ['rs_1', 'msg_1']]);
    assert.deepEqual(await saved.findItems(OWNER, ['rs_1', 'msg_1']), [ITEM, ITEM]);
    assert.equal(asked.length, 2);
    assert.deepEqual(await saved.findItems(OWNER, ['msg_1', 'rs_1']), [ITEM, ITEM]);
    assert.equal(asked.length, 2);
  });

  test('of which one is nobody’s are unknown, whoever else’s the others are', async () => {
    const { saved } = beforeItems([['rs_1']]);
    saved.rememberItem(OWNER, 'msg_1', ITEM);
    assert.equal(await saved.findItems(OWNER, ['msg_1', 'rs_1', 'msg_made_up']), 'unknown');
    assert.deepEqual(await saved.findItems(OWNER, ['msg_1', 'rs_1']), [ITEM, ITEM]);
  });
});

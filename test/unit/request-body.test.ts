// The states of a request's body: what of it is read and when, who is told, and that a body is watched by the server
// exactly while it arrives or is dropped.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type BodyContext,
  type BodySink,
  type BodySource,
  type BodyState,
  RequestBody,
} from '../../src/http/request-body.ts';

/** A body whose pieces come when the test says so. */
class BodyInHand {
  readonly body: RequestBody;
  /** What was done, in order. */
  readonly events: string[] = [];
  /** What the sink took, as text; `!` behind the last piece. */
  taken = '';
  /** A sink for the body. */
  readonly sink = {
    take: (bytes: Uint8Array, isLast: boolean): void => {
      this.taken += Buffer.from(bytes).toString() + (isLast ? '!' : '');
    },
  };
  private receiver: BodySink = { take: () => assert.fail('nobody receives the body') };

  constructor(declaredBytes: number | null = 9) {
    const note = (event: string) => (): void => void this.events.push(event);
    const source: BodySource = {
      handBodyTo: (receiver) => {
        this.events.push('receive');
        this.receiver = receiver;
      },
      pause: note('pause'),
      resume: note('resume'),
    };
    const owner = { onBodyFault: note('fault'), onBodyLate: note('late') };
    const context: BodyContext = {
      bodyTimeoutMs: 100,
      droppedBytesMax: 5,
      onBodyArriving: note('watch'),
      onBodySettled: note('settled'),
    };
    this.body = new RequestBody(declaredBytes, source, owner, context);
  }

  drop(): void {
    this.body.drop(50, () => this.events.push('dropped'));
  }

  come(text: string, isLast: boolean): void {
    this.receiver.take(new TextEncoder().encode(text), isLast);
  }

  assertIs(state: BodyState, ...events: string[]): void {
    assert.equal(this.body.state, state);
    assert.deepEqual(this.events, events);
  }
}

/** One whose beginning has come, and more is to come. */
function arriving(): BodyInHand {
  const inHand = new BodyInHand();
  inHand.body.receive(inHand.sink);
  inHand.come('be', false);
  return inHand;
}

/** Behind what is left for the end of the tick. */
const endOfTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a request body', () => {
  test('that comes with its head is whole at once, and not watched', () => {
    const inHand = new BodyInHand();
    inHand.body.receive(inHand.sink);
    assert.equal(inHand.body.isComplete, false);
    inHand.come('body', true);
    inHand.body.close();
    inHand.assertIs('closed', 'receive');
    assert.equal(inHand.taken, 'body!');
  });

  test('that is not declared is complete, and its end is handed on all the same', () => {
    const inHand = new BodyInHand(0);
    assert.equal(inHand.body.isComplete, true);
    inHand.body.watch();
    inHand.assertIs('absent');
    inHand.body.receive(inHand.sink);
    inHand.come('', true);
    inHand.assertIs('whole', 'receive');
    assert.equal(inHand.taken, '!');
  });

  test('in chunks is watched before anything of it comes', () => {
    const inHand = new BodyInHand(null);
    inHand.body.receive(inHand.sink);
    inHand.assertIs('arriving', 'receive', 'watch');
    inHand.come('body', false);
    inHand.come('', true);
    inHand.assertIs('whole', 'receive', 'watch', 'settled');
    assert.equal(inHand.taken, 'body!');
  });

  test('that comes in pieces is watched until it is whole', () => {
    const inHand = arriving();
    inHand.assertIs('arriving', 'receive', 'watch');
    inHand.come('gun', false);
    inHand.come(' end', true);
    inHand.assertIs('whole', 'receive', 'watch', 'settled');
    assert.equal(inHand.taken, 'begun end!');
  });

  test('that is held waits with the client behind what came in a tick', async () => {
    const inHand = new BodyInHand();
    inHand.body.hold();
    inHand.body.receive(inHand.sink);
    inHand.come('be', false);
    // The rest of what lay in the socket.
    inHand.come('gun', false);
    inHand.assertIs('arriving', 'receive', 'watch');
    await endOfTick();
    inHand.assertIs('arriving', 'receive', 'watch', 'pause');
    inHand.body.hold();
    await endOfTick();
    inHand.body.resume();
    inHand.body.resume();
    inHand.assertIs('arriving', 'receive', 'watch', 'pause', 'resume');
    assert.equal(inHand.taken, 'begun');
  });

  test('that is held and let come in one tick is not paused', async () => {
    const inHand = new BodyInHand();
    inHand.body.hold();
    inHand.body.receive(inHand.sink);
    inHand.come('be', false);
    inHand.body.resume();
    await endOfTick();
    inHand.assertIs('arriving', 'receive', 'watch');
  });

  test('that comes whole although it is held was never paused: nothing waits for more of it', async () => {
    const inHand = new BodyInHand();
    inHand.body.hold();
    inHand.body.receive(inHand.sink);
    inHand.come('be', false);
    inHand.come('gun', true);
    await endOfTick();
    inHand.assertIs('whole', 'receive', 'watch', 'settled');
  });

  test('that nobody receives waits with the client', async () => {
    const inHand = new BodyInHand();
    inHand.body.watch();
    inHand.come('be', false);
    await endOfTick();
    inHand.assertIs('arriving', 'receive', 'watch', 'pause');
  });

  test('is received by the last who asked, and asked for once', () => {
    const inHand = new BodyInHand();
    inHand.body.receive({ take: () => assert.fail('another receives the body now') });
    inHand.body.receive(inHand.sink);
    inHand.body.watch();
    inHand.come('body', true);
    inHand.assertIs('whole', 'receive');
    assert.equal(inHand.taken, 'body!');
  });

  test('whose receiver throws tells whose it is', () => {
    const inHand = new BodyInHand();
    inHand.body.receive({
      take: () => {
        throw new Error('a fault');
      },
    });
    inHand.come('body', true);
    inHand.assertIs('whole', 'receive', 'fault');
  });

  test('that is closed is neither watched nor handed on nor read on', async () => {
    const inHand = new BodyInHand();
    inHand.body.hold();
    inHand.body.receive(inHand.sink);
    inHand.come('be', false);
    await endOfTick();
    inHand.body.close();
    inHand.body.resume();
    inHand.come('gun', true);
    inHand.assertIs('closed', 'receive', 'watch', 'pause', 'settled');
    assert.equal(inHand.taken, 'be');
  });
});

describe('a body that is dropped', () => {
  test('behind its answer is read to its end', async () => {
    const inHand = new BodyInHand();
    inHand.body.hold();
    inHand.body.receive(inHand.sink);
    inHand.come('be', false);
    await endOfTick();
    inHand.body.close();
    inHand.drop();
    inHand.come('gun', false);
    inHand.come('', true);
    const before = ['receive', 'watch', 'pause', 'settled', 'watch', 'resume'];
    inHand.assertIs('dropping', ...before);
    await endOfTick();
    inHand.assertIs('dropping', ...before, 'dropped');
    inHand.body.close();
    inHand.assertIs('closed', ...before, 'dropped', 'settled');
    assert.equal(inHand.taken, 'be');
  });

  test('before anything of it was seen is asked for, and read to its end', async () => {
    const inHand = new BodyInHand();
    inHand.drop();
    inHand.come('be', false);
    inHand.come('gun', true);
    await endOfTick();
    inHand.assertIs('dropping', 'receive', 'watch', 'dropped');
  });

  test('is read for so many bytes and no more', async () => {
    const inHand = arriving();
    inHand.body.close();
    inHand.drop();
    inHand.come('12345', false);
    await endOfTick();
    const before = ['receive', 'watch', 'settled', 'watch'];
    inHand.assertIs('dropping', ...before);
    inHand.come('6', false);
    await endOfTick();
    inHand.assertIs('dropping', ...before, 'dropped');
  });

  test('whose client left meanwhile is forgotten', async () => {
    const inHand = arriving();
    inHand.body.close();
    inHand.drop();
    inHand.come('', true);
    inHand.body.close();
    await endOfTick();
    inHand.assertIs('closed', 'receive', 'watch', 'settled', 'watch', 'settled');
  });
});

describe('the time of a body', () => {
  test('that arrives is counted from when it is first told, and one that takes too long is said to be late', () => {
    const { body, events } = arriving();
    body.tick(1000);
    body.tick(1099);
    assert.ok(!events.includes('late'));
    body.tick(1100);
    assert.ok(events.includes('late'));
  });

  test('that is dropped is counted anew', () => {
    const inHand = arriving();
    inHand.body.tick(1000);
    inHand.body.close();
    inHand.drop();
    inHand.body.tick(1200);
    inHand.body.tick(1249);
    assert.ok(!inHand.events.includes('dropped'));
    inHand.body.tick(1250);
    inHand.assertIs('dropping', 'receive', 'watch', 'settled', 'watch', 'dropped');
  });
});

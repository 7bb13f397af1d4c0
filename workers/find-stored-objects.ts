// Worker task: finds the provider-stored objects that a request names, where the request's body is too big to be parsed
// on the event loop.

import { findStoredObjects, type StoredObjectsFound } from '../src/domain/stored-objects/find-stored-objects.ts';

export default function findStoredObjectsInWorker(body: Uint8Array): StoredObjectsFound {
  return findStoredObjects(body);
}

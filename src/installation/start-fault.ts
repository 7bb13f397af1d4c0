// The reason why an installation cannot start or a command cannot work, written for the operator: it is printed without
// a stack.

export class StartFault extends Error {
  override readonly name = 'StartFault';
}

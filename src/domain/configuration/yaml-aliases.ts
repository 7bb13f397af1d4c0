// Finds the nodes that the aliases of a YAML document refer to, and the aliases that cannot be resolved.

import { type Alias, type Document, isAlias, type Node, visit } from 'yaml';
import type { YamlMistake } from './yaml-document.ts';

export interface Aliases {
  /** Without mistaken aliases, so that following the targets always ends. */
  readonly targets: ReadonlyMap<Alias, Node>;
  readonly mistakes: readonly MistakenAlias[];
}

export interface MistakenAlias extends YamlMistake {
  readonly alias: Alias;
  readonly isKnown: boolean;
}

export function readAliases(document: Document): Aliases {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  const mistakes: MistakenAlias[] = [];
  visit(document, {
    Node(_, node, path) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        return;
      }
      const target = anchors.get(node.source);
      const mistaken = { alias: node, offset: node.range?.[0] ?? 0, isKnown: target !== undefined };
      if (target === undefined)
        mistakes.push({ ...mistaken, message: 'an alias names an anchor that does not stand before it' });
      else if (path.includes(target)) mistakes.push({ ...mistaken, message: 'an alias stands within its own anchor' });
      else targets.set(node, target);
    },
  });
  return { targets, mistakes };
}

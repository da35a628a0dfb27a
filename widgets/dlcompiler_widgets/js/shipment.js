/*
 * Long lists: a base that is sent rarely, and parts: ranges of it, and items that it lacks.
 */

/** The list that a base and its parts stand for; null while they do not belong together. */
export function unpack(base, packed) {
  if (base?.version !== packed?.version) return null;
  return packed.parts.flatMap((part) =>
    Array.isArray(part) ? base.items.slice(part[0], part[1]) : [part]);
}

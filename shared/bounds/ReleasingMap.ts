/**
 * A map by id that releases deleted items to the garbage collector immediately, for items that come and go fast.
 *
 * V8's own maps and sets do not. When one outgrows its table, the old table keeps its items and points to the new one. Once a table is
 * in the old generation, all later tables stay alive until the next full collection, and every minor collection must move their items.
 */
export class ReleasingMap<A extends { readonly id: string | number }> {
  readonly #entries = new Map<A["id"], { item: A | undefined }>()

  get size(): number {
    return this.#entries.size
  }

  get(id: A["id"]): A | undefined {
    return this.#entries.get(id)?.item
  }

  add(item: A): void {
    this.#entries.set(item.id, { item })
  }

  delete({ id }: A): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    entry.item = undefined
    this.#entries.delete(id)
  }

  *[Symbol.iterator](): Generator<A> {
    for (const { item } of this.#entries.values()) if (item !== undefined) yield item
  }
}

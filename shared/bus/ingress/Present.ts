/**
 * What is there at present, by id, where much comes and goes: a map that lets go at once of what is deleted.
 *
 * V8's own maps and sets do not. Each time one outgrows its table the old one is left as it was, with all that was in it, and
 * points to the new one. As soon as one table has become old, those after it live as long as it does, until the next full GC,
 * and every minor one has to move what they hold.
 */
export class Present<A extends { readonly id: string }> {
  readonly #entries = new Map<string, { item: A | undefined }>()

  get size(): number {
    return this.#entries.size
  }

  get(id: string): A | undefined {
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

/** The columns that an import of a database does not carry over, with the rows that have them. */

/** How many rows a line names. */
const named = 5

export class Omissions {
  readonly #rows = new Map<string, Array<string>>()

  /** `row` names the row in the report: a key's or a team's name. */
  add(column: string, message: string, row: string): void {
    const line = JSON.stringify([column, message])
    const rows = this.#rows.get(line)
    if (rows === undefined) this.#rows.set(line, [row])
    else rows.push(row)
  }

  get report(): ReadonlyArray<string> {
    return [...this.#rows].map(([line, rows]) => {
      const [column, message] = JSON.parse(line) as readonly [string, string]
      const more = rows.length > named ? ` and ${rows.length - named} more` : ""
      return `${column} of ${rows.slice(0, named).join(", ")}${more}: ${message}`
    })
  }
}

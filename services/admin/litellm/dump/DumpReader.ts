/**
 * Reads the rows of some tables from a plain SQL dump of PostgreSQL, as it streams in: `COPY` blocks, or `INSERT` statements
 * (`--inserts`, `--column-inserts`, `--rows-per-insert`).
 *
 * Holds at most one line or row in memory, and the names of columns.
 */
import { fromCopy, InsertedRows } from "./DumpText.ts"

/** A row by its columns; `null` as in SQL. Booleans are `t` and `f` in `COPY` blocks, `true` and `false` in statements. */
export type Row = Readonly<Record<string, string | null>>

/** Maximum length of a line. The longest rows are those of usage logs, which the import does not need. */
export const maxLineBytes = 16 * 1024 * 1024

const newline = 0x0a
const utf8 = new TextDecoder("utf-8")

const leaveOut = `leave the usage logs out by \`pg_dump --exclude-table-data='"LiteLLM_SpendLogs"'\``

/** Why a file is not a plain dump, by its first bytes. */
const otherFormats: ReadonlyArray<readonly [string, string]> = [
  ["PGDMP", "is a dump in pg_dump's custom format: convert it by `pg_restore -f dump.sql FILE`"],
  ["\u001f", "is compressed: unpack it by `gunzip`"]
]

const name = String.raw`(?:"?\w+"?\.)?"?(\w+)"?`
const copyStart = new RegExp(String.raw`^COPY ${name} \((.*)\) FROM stdin;$`)
const insertStart = new RegExp(String.raw`^INSERT INTO ${name} (?:\(([^)]*)\) )?(?:OVERRIDING \w+ VALUE )?VALUES ?`)
const createStart = new RegExp(String.raw`^CREATE TABLE ${name} \($`)
const createdColumn = /^ {4}"?(\w+)"? /

const columnsIn = (list: string): ReadonlyArray<string> =>
  list.split(",").map((column) => column.trim().replaceAll("\"", ""))

type State =
  | { readonly in: "between" }
  | { readonly in: "create"; readonly table: string }
  | { readonly in: "copy"; readonly table: string; readonly columns: ReadonlyArray<string> }
  | {
    readonly in: "insert"
    readonly table: string
    readonly columns: ReadonlyArray<string>
    readonly rows: InsertedRows
  }

export class DumpReader {
  readonly #isWanted: (table: string) => boolean
  readonly #onRow: (table: string, row: Row) => void
  /** The number of rows of each table, wanted or not. */
  readonly counts = new Map<string, number>()
  readonly #columns = new Map<string, ReadonlyArray<string>>()
  #state: State = { in: "between" }
  #parts: Array<Uint8Array> = []
  #length = 0
  #number = 1

  constructor(isWanted: (table: string) => boolean, onRow: (table: string, row: Row) => void) {
    this.#isWanted = isWanted
    this.#onRow = onRow
  }

  /** Reads the next bytes. Returns what is wrong with the dump, or `undefined`. */
  push(bytes: Uint8Array): string | undefined {
    if (this.#number === 1 && this.#length === 0) {
      const start = String.fromCharCode(...bytes.subarray(0, 5))
      const other = otherFormats.find(([mark]) => start.startsWith(mark))
      if (other !== undefined) return other[1]
    }
    for (let at = 0; at < bytes.length;) {
      const end = bytes.indexOf(newline, at)
      const part = bytes.subarray(at, end === -1 ? bytes.length : end)
      this.#length += part.length
      if (this.#length > maxLineBytes) return `line ${this.#number} is longer than ${maxLineBytes} bytes: ${leaveOut}`
      this.#parts.push(part)
      if (end === -1) return undefined
      const wrong = this.#finish()
      if (wrong !== undefined) return `line ${this.#number - 1} ${wrong}`
      at = end + 1
    }
    return undefined
  }

  /** Reads the last line. Returns what is wrong with the dump, or `undefined`. */
  end(): string | undefined {
    const wrong = this.#length === 0 ? undefined : this.#finish()
    if (wrong !== undefined) return `line ${this.#number - 1} ${wrong}`
    return this.#state.in === "between" ? undefined : `ends within the table ${this.#state.table}: it is incomplete`
  }

  #finish(): string | undefined {
    const [first] = this.#parts
    const line = utf8.decode(this.#parts.length === 1 ? first : Buffer.concat(this.#parts))
    this.#parts = []
    this.#length = 0
    this.#number += 1
    return this.#read(line.endsWith("\r") ? line.slice(0, -1) : line)
  }

  #read(line: string): string | undefined {
    const state = this.#state
    switch (state.in) {
      case "between":
        return this.#start(line)
      case "create": {
        if (line.startsWith(")")) this.#state = { in: "between" }
        const [, column] = createdColumn.exec(line) ?? []
        if (column !== undefined && column !== "CONSTRAINT") {
          this.#columns.set(state.table, [...this.#columns.get(state.table) ?? [], column])
        }
        return undefined
      }
      case "copy":
        if (line === "\\.") this.#state = { in: "between" }
        else return this.#row(state, () => line.split("\t").map(fromCopy))
        return undefined
      case "insert":
        return this.#insert(state, line)
    }
  }

  #start(line: string): string | undefined {
    if (line.startsWith("SET client_encoding") && !line.includes("UTF8")) {
      return "must have the encoding UTF8: dump with `--encoding=UTF8`"
    }
    if (line === "SET standard_conforming_strings = off;") {
      return "needs standard_conforming_strings: set it to on in the server"
    }
    const [, created] = createStart.exec(line) ?? []
    if (created !== undefined) {
      this.#columns.delete(created)
      this.#state = { in: "create", table: created }
      return undefined
    }
    const [, copied, list = ""] = copyStart.exec(line) ?? []
    if (copied !== undefined) {
      this.#seen(copied)
      this.#state = { in: "copy", table: copied, columns: columnsIn(list) }
      return undefined
    }
    const [start = "", table, named] = insertStart.exec(line) ?? []
    if (table === undefined) return undefined
    this.#seen(table)
    const columns = named === undefined ? this.#columns.get(table) : columnsIn(named)
    if (columns === undefined && this.#isWanted(table)) {
      return `does not name the columns of ${table}: dump the schema, too, or use \`--column-inserts\``
    }
    const state: State = { in: "insert", table, columns: columns ?? [], rows: new InsertedRows() }
    this.#state = state
    return this.#insert(state, line.slice(start.length))
  }

  #seen(table: string): void {
    this.counts.set(table, this.counts.get(table) ?? 0)
  }

  #insert(state: State & { readonly in: "insert" }, text: string): string | undefined {
    const { isEnded, rows } = state.rows.push(`${text}\n`)
    if (isEnded) this.#state = { in: "between" }
    if (state.rows.length > maxLineBytes) return `has a row of more than ${maxLineBytes} characters: ${leaveOut}`
    for (const row of rows) {
      const wrong = this.#row(state, () => row)
      if (wrong !== undefined) return wrong
    }
    return undefined
  }

  #row(
    { columns, table }: { readonly table: string; readonly columns: ReadonlyArray<string> },
    read: () => ReadonlyArray<string | null>
  ): string | undefined {
    this.counts.set(table, (this.counts.get(table) ?? 0) + 1)
    if (!this.#isWanted(table)) return undefined
    const values = read()
    if (values.length !== columns.length) {
      return `has ${values.length} values for the ${columns.length} columns of ${table}`
    }
    this.#onRow(table, Object.fromEntries(columns.map((column, index) => [column, values[index] ?? null])))
    return undefined
  }
}

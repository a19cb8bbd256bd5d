/**
 * The log of a batch: the state and the result of each line. A worker writes a line's entry before it calls a provider for the line,
 * and again when the line has a result, each by compare-and-set. So at most one worker calls a provider for a line, and the first
 * result stays.
 *
 * The holder of the batch follows the log. It closes the log before it assembles the results: a worker that finds the log closed calls
 * no provider.
 */
import { Effect, Option, type Schedule, Schema, Stream } from "effect"
import type { Owner } from "../../contract/Owner.ts"
import { Usage } from "../../contract/Usage.ts"
import { backOff, type JetStreamFailed, whileJetStreamFails } from "../../nats/JetStream.ts"
import { type Bucket, openBucket } from "../../nats/KeyValue.ts"
import { buckets } from "../../nats/Storage.ts"
import { ownerToken } from "../../records/OwnerToken.ts"
import * as Seal from "../../records/Seal.ts"
import * as TaskPages from "../../tasks/answers/TaskPages.ts"
import * as Line from "./Line.ts"
import type { LinePlace, ResultAbout } from "./Line.ts"

/**
 * `taken`: a worker has the line, but another may still perform it. `begun`: a provider may have been called, so no other worker may
 * perform the line. `stopped`: the holder has ended the line without a result.
 */
const kinds = ["taken", "begun", "completed", "failed", "stopped"] as const
export type Kind = typeof kinds[number]

/** Whether a line may still get a result. */
export const isOpen = (kind: Kind): boolean => kind === "taken" || kind === "begun"

const Entry = Schema.Struct({
  kind: Schema.Literals(kinds),
  /** The worker, and when the queue stored its job, in epoch milliseconds: tells apart jobs of a line that is in the queue twice. */
  worker: Schema.String,
  job: Schema.Finite,
  /** When the worker took the line, in epoch milliseconds. */
  at: Schema.Finite,
  /** The last provider that was called, if any, and the model's name there. */
  provider: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  usage: Schema.optionalKey(Usage),
  /** The tag of the error. */
  error: Schema.optionalKey(Schema.String),
  /** The number of pages before the last part of the answer, which is in the entry itself. */
  pages: Schema.optionalKey(Schema.Int)
})
export type Entry = typeof Entry.Type

const codec = Schema.fromJsonString(Entry)
const encode = Schema.encodeSync(codec)
const decode = Schema.decodeUnknownOption(codec)

/**
 * Stands for an entry that this version cannot read. A newer version has written it and may have called a provider, so no job may
 * perform the line, and only the holder of the batch ends it.
 */
const unreadable: Entry = { kind: "begun", worker: "", job: 0, at: 0 }

const newline = 0x0a

/** The worker that has taken a line, and when. Part of the keys of its pages, so that pages of two workers are never mixed. */
export type Taker = Pick<Entry, "worker" | "at">

export interface Found {
  readonly entry: Entry
  readonly sealed: Uint8Array
  /** The revision that the next write must name. */
  readonly revision: number
}

/** A write to the log. `at`: its sequence. */
export interface Followed extends Pick<Found, "entry" | "sealed"> {
  readonly line: number
  readonly at: number
}

/** The mark that the log is closed. */
export interface Closed {
  readonly line: "closed"
  readonly at: number
}

export interface Result {
  readonly about: ResultAbout
  /** The last part of the answer. */
  readonly bytes: Uint8Array
}

export interface LineLog {
  readonly read: (place: LinePlace) => Effect.Effect<Option.Option<Found>, JetStreamFailed>
  /** Writes a line without a result; `None` if another write came first. `revision`: of the last write, or 0 for a first write. */
  readonly write: (
    place: LinePlace,
    entry: Entry,
    revision: number
  ) => Effect.Effect<Option.Option<number>, JetStreamFailed>
  /** Writes a line with its result; `false` if another write came first. */
  readonly end: (
    place: LinePlace,
    entry: Entry,
    result: Result,
    revision: number
  ) => Effect.Effect<boolean, JetStreamFailed>
  /** Opens the request in a job; `None` if it was tampered with or is missing. */
  readonly openJob: (
    place: LinePlace,
    body: Uint8Array
  ) => Effect.Effect<Option.Option<{ readonly about: Line.JobAbout; readonly bytes: Uint8Array }>, JetStreamFailed>
  /** The sealed body of a job. Stores a request that is too large for the job in pages. */
  readonly sealJob: (
    place: LinePlace,
    about: Omit<Line.JobAbout, "pages">,
    body: Uint8Array
  ) => Effect.Effect<Uint8Array, JetStreamFailed>
  /** Stores a page of an answer; `false` if another page with this number exists. */
  readonly append: (
    place: LinePlace,
    taker: Taker,
    page: number,
    bytes: Uint8Array
  ) => Effect.Effect<boolean, JetStreamFailed>
  /** The line of the result in the file of results. Fails if a part of it is missing. */
  readonly outputOf: (
    place: LinePlace,
    found: Pick<Found, "entry" | "sealed">
  ) => Stream.Stream<Uint8Array, JetStreamFailed | LineDamaged>
  /** Everything in the log, and then each new write. Never ends; waits while the connection is lost. */
  readonly follow: (owner: Owner, batch: string) => Stream.Stream<Followed | Closed>
  readonly close: (owner: Owner, batch: string) => Effect.Effect<void, JetStreamFailed>
  readonly isClosed: (owner: Owner, batch: string) => Effect.Effect<boolean, JetStreamFailed>
  /** The sequence of the last write; 0 if the log is empty. */
  readonly newest: (owner: Owner, batch: string) => Effect.Effect<number, JetStreamFailed>
  /** Deletes the content of a log, which stays closed. */
  readonly clear: (owner: Owner, batch: string) => Effect.Effect<void, JetStreamFailed>
}

/** A result was tampered with, or the owner's salt was deleted. */
export class LineDamaged extends Schema.TaggedError<LineDamaged>()("LineDamaged", { line: Schema.Int }) {
  override get message() {
    return `The result of line ${this.line + 1} is damaged`
  }
}

/** Maximum number of bytes of a request in a job: small, because many jobs of a batch may be in a queue. */
const inlineBytes = 64 * 1024

/** Hints that do nothing, because no reader waits for pages of lines. */
const noHints = { give: () => undefined, follow: () => Effect.succeed(Effect.never) }

const none = new Uint8Array(0)
const closedToken = "closed"

/** Reads `GATEWAY_SECRET`. */
export const open = Effect.fnUntraced(function*(patience: Schedule.Schedule<unknown>) {
  const bucket = yield* openBucket(buckets.batchLines).pipe(Effect.retry(whileJetStreamFails))
  return make(bucket, yield* Seal.fromSecret, patience)
})

const make = (bucket: Bucket, seal: Seal.Seal, patience: Schedule.Schedule<unknown>): LineLog => {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)
  const pages = TaskPages.make(bucket, seal, noHints, patience)
  const prefixOf = (owner: Owner, batch: string) => `${ownerToken(owner)}.${batch}.`
  const keyOf = ({ batch, line, owner }: LinePlace) => `${prefixOf(owner, batch)}${line}`
  const closedKey = (owner: Owner, batch: string) => prefixOf(owner, batch) + closedToken
  /** The names of a line's pages. They contain the batch, so that the keys of the pages do too. */
  const requestOf = ({ batch, line }: LinePlace) => `${batch}.${line}`
  const answerOf = (place: LinePlace, { at, worker }: Taker) => `${requestOf(place)}-${worker}-${at}`
  const sealedPlace = (kind: "job" | "result", { batch, line, owner }: LinePlace): Seal.Place => ({
    owner,
    kind: `batch ${kind}`,
    id: batch,
    page: line
  })

  const put = (place: LinePlace, entry: Entry, sealed: Uint8Array, revision: number) =>
    again(bucket.updateBytes(keyOf(place), Buffer.concat([Buffer.from(`${encode(entry)}\n`), sealed]), revision))

  const split = (value: Uint8Array) => {
    const end = value.indexOf(newline)
    const entry = Option.getOrElse(decode(Buffer.from(value.subarray(0, end)).toString()), () => unreadable)
    return { entry, sealed: value.subarray(end + 1) }
  }

  const followFrom = (owner: Owner, batch: string, from: number): Stream.Stream<Followed | Closed> => {
    const prefix = prefixOf(owner, batch)
    let last = from - 1
    return Stream.suspend(() => bucket.follow(`${prefix}*`, last + 1)).pipe(
      Stream.map(({ at, key, value }): ReadonlyArray<Followed | Closed> => {
        last = at
        const line = key.slice(prefix.length)
        if (line === closedToken) return [{ line: closedToken, at }]
        return Option.toArray(Option.map(value, (value) => ({ ...split(value), line: Number(line), at })))
      }),
      Stream.flattenIterable,
      Stream.retry(backOff),
      Stream.orDie
    )
  }

  return {
    read: (place) =>
      Effect.map(
        again(bucket.getWritten(keyOf(place))),
        Option.map(({ revision, value }) => ({ ...split(value), revision }))
      ),
    write: (place, entry, revision) => put(place, entry, none, revision),
    end: (place, entry, { about, bytes }, revision) =>
      Effect.map(
        put(place, entry, seal.seal(sealedPlace("result", place), Line.result.encode(about, bytes)), revision),
        Option.isSome
      ),
    openJob: Effect.fnUntraced(function*(place, body) {
      const found = Option.flatMap(seal.open(sealedPlace("job", place), body), Line.job.decode)
      const stored = Option.getOrUndefined(found)?.about.pages
      if (Option.isNone(found) || stored === undefined) return found
      const bytes = yield* pages.readRequest(place.owner, requestOf(place), stored)
      return Option.map(bytes, (bytes) => ({ about: found.value.about, bytes }))
    }),
    sealJob: Effect.fnUntraced(function*(place, about, body) {
      const isInline = body.length <= inlineBytes
      const stored = isInline ? {} : { pages: yield* pages.writeRequest(place.owner, requestOf(place), body) }
      return seal.seal(sealedPlace("job", place), Line.job.encode({ ...about, ...stored }, isInline ? body : none))
    }),
    append: (place, taker, page, bytes) => pages.append(place.owner, answerOf(place, taker), page, {}, bytes),
    outputOf: (place, { entry, sealed }) =>
      Stream.suspend(() => {
        const { pages: count = 0 } = entry
        const damaged = new LineDamaged({ line: place.line })
        const found = Option.flatMap(seal.open(sealedPlace("result", place), sealed), Line.result.decode)
        if (Option.isNone(found)) return Stream.fail(damaged)
        const [head, tail] = Line.outputOf(place, found.value.about)
        const before = Stream.range(0, count - 1).pipe(
          Stream.mapEffect((page) => pages.read(place.owner, answerOf(place, entry), page)),
          Stream.mapEffect((page) => Option.isNone(page) ? Effect.fail(damaged) : Effect.succeed(page.value.bytes)),
          Stream.map(Line.onOneLine)
        )
        const last = [Line.onOneLine(found.value.bytes), Buffer.from(tail)]
        return count === 0
          ? Stream.succeed(Buffer.concat([Buffer.from(head), ...last]))
          : Stream.succeed(Buffer.from(head)).pipe(Stream.concat(before), Stream.concat(Stream.fromIterable(last)))
      }),
    follow: (owner, batch) => followFrom(owner, batch, 1),
    close: (owner, batch) => again(bucket.put(closedKey(owner, batch), "")),
    isClosed: (owner, batch) => Effect.map(again(bucket.getWritten(closedKey(owner, batch))), Option.isSome),
    newest: (owner, batch) => again(bucket.newest(`${prefixOf(owner, batch)}*`)),
    clear: Effect.fnUntraced(function*(owner, batch) {
      const key = closedKey(owner, batch)
      yield* again(bucket.put(key, ""))
      const closed = yield* again(bucket.getWritten(key))
      if (Option.isSome(closed)) yield* again(bucket.purge(`${prefixOf(owner, batch)}>`, closed.value.revision))
    })
  }
}

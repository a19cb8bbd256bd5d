/** Follows the changes of the catalogue's file: takes an edit that is valid, and that no other process objects to. */
import { Effect, FileSystem, Option, Result, type Scope } from "effect"
import { untilNext } from "../../bounds/MonotonicClock.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { Agreement, isSame, type Revision, unread } from "./Agreement.ts"

/** How to read one kind of catalogue. The error of each step has a message for the operator. */
export interface Source<A, E extends { readonly message: string }, R> {
  readonly file: string
  readonly read: Effect.Effect<string, E, R>
  readonly decode: (text: string) => Effect.Effect<A, E>
  /** The text's revision, also if it is invalid. */
  readonly revisionOf: (text: string) => Revision
  /** Checks what this process needs in order to use the new value instead of the old one. */
  readonly check: (to: A, from: A) => Effect.Effect<void, E>
  /** The number of models, for the log. */
  readonly count: (value: A) => number
}

/** A value that changes when the file does; `undefined` without a file. Cheaper than reading the file, which takes four system calls. */
const stampOf = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(file)).pipe(
    Effect.map(({ ino, mode, mtime, size }) =>
      [Option.getOrNull(ino), mode, Option.getOrNull(mtime)?.getTime(), size].join()
    ),
    Effect.orElseSucceed(() => undefined)
  )

/** How often to check for changes, in milliseconds. A file watch would miss the swapped symbolic links of a ConfigMap. */
const pollMs = 2_000

/** How many checks of the file to let pass between two tries to take an edit: at first none, at most this many. */
const maxSkips = 15

/** A catalogue with its text. */
interface Version<A> {
  readonly text: string
  readonly value: A
}

/** The file's text where it differs from the catalogue in use. */
interface Candidate<A> {
  readonly text: string
  /** Absent if it is invalid. */
  readonly value?: A
  /** Why this process cannot use it; logged when it changes. Before the first check, that it has not been read. */
  mistake: string | undefined
  /** The objections of others that were logged. */
  objections: string
  tries: number
  skips: number
}

const kept = "catalogue not reloaded, keeping the old one"

/** Reads the file and follows its changes until the scope closes. Returns a getter of the current value. */
export const follow = Effect.fnUntraced(function*<A, E extends { readonly message: string }, R>(
  { check, count, decode, file, read, revisionOf }: Source<A, E, R>
): Effect.fn.Return<() => A, E, R | FileSystem.FileSystem | Scope.Scope> {
  const agreement = yield* Agreement
  let stamp = yield* stampOf(file)
  /** The latest text, valid or not, so that each change is logged once; `undefined` if the file was unreadable. */
  let text: string | undefined = yield* read
  let current: Version<A> = { text, value: yield* decode(text) }
  let candidate: Candidate<A> | undefined
  /** Whether the current catalogue has yet to be logged. */
  let isNew = false
  yield* Metrics.observe(Metrics.catalogueRefused(), () => candidate === undefined && text !== undefined ? 0 : 1)

  // most processes never compute one: parsing a large catalogue again would delay their start
  const revisions = new Map<string, Revision>()
  const revision = (text: string): Revision => {
    const known = revisions.get(text) ?? revisionOf(text)
    for (const old of revisions.keys()) if (old !== current.text && old !== candidate?.text) revisions.delete(old)
    revisions.set(text, known)
    return known
  }

  const take = (text: string, value: A) => {
    current = { text, value }
    candidate = undefined
    isNew = true
  }

  const refuse = (candidate: Candidate<A>, mistake: string) => {
    const isKnown = candidate.mistake === mistake
    candidate.mistake = mistake
    return isKnown ? Effect.void : Effect.logError(kept, { detail: mistake })
  }

  const readChange = Effect.gen(function*() {
    const latest = yield* stampOf(file)
    if (latest !== undefined && latest === stamp) return
    const found = yield* Effect.result(read)
    stamp = Result.isSuccess(found) ? latest : undefined
    const now = Result.isSuccess(found) ? found.success : undefined
    if (now === text) return
    text = now
    candidate = undefined
    if (Result.isFailure(found)) return yield* Effect.logError(kept, { detail: found.failure.message })
    if (found.success === current.text) return
    const decoded = yield* Effect.result(decode(found.success))
    const waiting = { text: found.success, mistake: unread, objections: "", tries: 0, skips: 0 }
    if (Result.isSuccess(decoded)) {
      candidate = { ...waiting, value: decoded.success }
      return
    }
    candidate = waiting
    yield* refuse(candidate, decoded.failure.message)
  })

  const tryToTake = Effect.gen(function*() {
    const asked = candidate
    if (asked?.value === undefined || asked.skips-- > 0) return
    asked.skips = Math.min(2 ** asked.tries - 1, maxSkips)
    asked.tries++
    const checked = yield* Effect.result(check(asked.value, current.value))
    // others may have agreed, or the file may have changed, meanwhile
    if (candidate !== asked) return
    if (Result.isFailure(checked)) return yield* refuse(asked, checked.failure.message)
    asked.mistake = undefined
    const edit = { from: revision(current.text), to: revision(asked.text) }
    if (isSame(edit.from, edit.to)) return take(asked.text, asked.value)
    const objections = yield* agreement.objections(edit)
    if (candidate !== asked) return
    if (objections.length === 0) {
      take(asked.text, asked.value)
      return yield* agreement.announce(edit)
    }
    // the others read the file at about the same time
    const lasting = asked.tries < 3 ? objections.filter((one) => !one.endsWith(unread)) : objections
    const detail = lasting.join("\n")
    if (detail === "" || detail === asked.objections) return
    asked.objections = detail
    yield* Effect.logError(kept, { detail: `other processes object:\n${detail}` })
  })

  const logNew = Effect.suspend(() => {
    if (!isNew) return Effect.void
    isNew = false
    return Effect.logInfo("catalogue reloaded", { file, models: count(current.value) })
  })

  yield* agreement.join(
    () => ({
      current: revision(current.text),
      ...(candidate === undefined
        ? {}
        : { candidate: { revision: revision(candidate.text), mistake: candidate.mistake } })
    }),
    (to) => {
      if (candidate?.value === undefined || candidate.mistake !== undefined) return
      if (isSame(revision(candidate.text), to)) take(candidate.text, candidate.value)
    }
  )
  // traces of each poll would drown out those of requests
  yield* Effect.andThen(untilNext(pollMs), readChange).pipe(
    Effect.andThen(tryToTake),
    Effect.andThen(logNew),
    Effect.withTracerEnabled(false),
    Effect.forever,
    Effect.forkScoped
  )
  return () => current.value
})

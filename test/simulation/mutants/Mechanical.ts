/** Mechanical faults: each negates one guard, or drops one message. A file contains all of its faults; a number switches one on. */
import {
  life,
  links,
  pool,
  publications,
  pulls,
  receiver,
  reply,
  sender,
  server,
  source,
  state,
  textOf,
  tracker,
  watch,
  writer
} from "./Files.ts"
import type { Switch } from "./Mutants.ts"
import {
  absentWorker,
  alone,
  bodies,
  cuts,
  cutWhileBusy,
  deploysOfAll,
  deployWithoutUsage,
  extremes,
  fault,
  frozenAfterPing,
  frozenLeader,
  frozenServers,
  heldEnds,
  idle,
  lastClaimsLost,
  lastJobAway,
  lateBundles,
  leavers,
  longAlone,
  longAndCut,
  longSilence,
  lostCancel,
  lostCredit,
  lostEnds,
  lostGo,
  type Needs,
  orphans,
  peace,
  rests,
  shortSilence,
  steady,
  version2,
  weather
} from "./Needs.ts"

const files = [
  tracker,
  watch,
  publications,
  receiver,
  server,
  sender,
  reply,
  source,
  pulls,
  writer,
  links,
  state,
  life,
  pool
]

const guard = /^( *(?:\} else |else )?if \()(.+)$/
const message = /^( *)((?:return )?(?:this\.#)?(?:[\w.#]+\.)?(?:outbox|#outbox)\.publish\(.*\)|this\.#send\(.*\))$/

/** The condition that begins here, up to its closing parenthesis; `undefined` if that is on another line. */
const conditionIn = (text: string): string | undefined => {
  let open = 1
  for (const [at, letter] of [...text].entries()) {
    open += letter === "(" ? 1 : letter === ")" ? -1 : 0
    if (open === 0) return text.slice(0, at)
  }
  return undefined
}

/** Simulations have no tracer. */
const isOfSpans = (line: string): boolean => /span/i.test(line)

interface Fault {
  readonly does: string
  /** The line, with the fault if this expression is true. */
  readonly line: (isOn: string) => string
}

/** The fault of a line, if it has a guard or sends a message. */
const faultOf = (line: string): Fault | undefined => {
  if (isOfSpans(line)) return undefined
  const [, before, rest = ""] = guard.exec(line) ?? []
  const condition = conditionIn(rest)
  if (before !== undefined && condition !== undefined) {
    const after = rest.slice(condition.length)
    return { does: `negates ${condition}`, line: (isOn) => `${before}!(${condition}) === (${isOn})${after}` }
  }
  const [, indent, sends] = message.exec(line) ?? []
  if (sends === undefined) return undefined
  const [isLast, call] = sends.startsWith("return ") ? ["return ", sends.slice("return ".length)] : ["", sends]
  return { does: `drops ${call}`, line: (isOn) => `${indent}${isLast}${isOn} ? undefined : ${call}` }
}

/** A note about a fault. `line` is the beginning of the fault's line. */
interface Note {
  readonly file: string
  readonly line: string
  /** The beginning of the line above, if several lines begin alike. */
  readonly below?: string
  /** Why no simulation can find it. */
  readonly excuse?: string
  readonly needs?: Needs
}

const afterReconnect =
  "messages leave up to 750 ms earlier or later after a reconnect; bundles are sent again if they are lost"
const estimates =
  "the window stays smaller or grows larger, which takes more jobs per second than a simulation has to show"

const rates =
  "how fast the queue moves is measured at other times, so that fewer requests are rejected early, which takes more of them"

const forgotten =
  "the job counts as lost once more, and the projector drops that event, since another worker has written the job's own"
const lateAnswers =
  "jobs that the stream lacks are confirmed up to three seconds later, unless it elects a leader, of which NATS tells at once"
const abandoned =
  "jobs that a worker has given up while it was apart from their ingress are found by their silence, a few seconds later"

const parking =
  "a job that waits for a provider keeps its slot, or frees it for longer, which takes more jobs than a simulation has to show"

const notes: ReadonlyArray<Note> = [
  { file: reply, line: "if (isUrgent) this.#options.outbox", excuse: "frames leave a millisecond earlier or later" },
  {
    file: pulls,
    line: "if (this.#outstanding > 0) this.#nats.outbox",
    excuse: "requests leave a millisecond earlier or later"
  },
  { file: watch, line: "if (this.#unheard.delete(worker)", excuse: afterReconnect },
  { file: server, line: "if (this.#unheard.size === 0)", excuse: afterReconnect },
  { file: server, line: "if (this.#unheard.delete(ingress)", excuse: afterReconnect },
  {
    file: tracker,
    line: "if ((wasUnclaimed && !isUnclaimed) || (isOver(next) && !isOver(before))) this.#admit",
    excuse: "waiting jobs are published by the next tick instead, 50 ms later at most"
  },
  { file: tracker, line: "if (job.state.state === \"Published\") this.#noteClaim(", excuse: estimates },
  { file: pool, line: "if (!Number.isNaN(behind)) this.#window.claimed(", excuse: estimates },
  {
    file: server,
    line: "if (now - this.#checkedAt > stalledMs)",
    excuse:
      "a job whose call is free runs twice until its first frame is refused, or its claim waits for an answer in vain"
  },
  { file: tracker, line: "if (\"worker\" in before", excuse: forgotten },
  { file: tracker, line: "if (this.#repeated.size", excuse: forgotten },
  { file: tracker, line: "if (until > now) break", excuse: forgotten },

  { file: tracker, line: "if (frame.type === \"pong\")", excuse: abandoned },
  { file: tracker, line: "if (this.#bundles.hasReceived(", excuse: abandoned },
  { file: tracker, line: "return this.#outbox.publish(...job.toMessage", needs: alone() },
  { file: tracker, line: "if (state.state === \"Claimed\" && state.redispatch", needs: frozenServers },
  { file: tracker, line: "if (wasStalled || !this.#nats.isSettled())", needs: version2 },
  { file: tracker, line: "else if (!isStalled) this.occupancyExchange", needs: version2 },
  { file: tracker, line: "if (wasStalled) this.#workers", needs: frozenAfterPing },
  {
    file: tracker,
    line: "if (sender !== undefined) {",
    below: "case \"refuse\":",
    excuse: "a job whose call is free runs twice until its first frame is refused"
  },
  { file: tracker, line: "if (this.#nats.isSettled()) { for (const pool", excuse: rates },
  {
    file: tracker,
    line: "if (this.#nats.isSettled() && !wasStalled",
    needs: alone("freeze nats", "freeze ingress", "kill worker")
  },
  { file: tracker, line: "if (job.taken > 0)", needs: lostCredit },
  { file: tracker, line: "if (job.taken - job.reportedTaken", needs: longAlone },
  { file: tracker, line: "if (frame.type === \"heartbeat\")", needs: extremes },
  { file: tracker, line: "if (frame.type === \"claims\")", needs: version2 },
  { file: tracker, line: "if (message.reply === undefined", needs: version2 },
  { file: tracker, line: "if (frame === undefined) return", needs: version2 },
  { file: tracker, line: "if (!isLast(frame)) this.#refuse", needs: lostCancel },
  { file: tracker, line: "if (job.worker === undefined || attempt === undefined) return", needs: longAlone },
  { file: watch, line: "if (now() - askedAt <= stalledMs) return", needs: longSilence },
  { file: watch, line: "if (this.#askedAt !== undefined) return", needs: alone("freeze nats") },
  { file: watch, line: "if (silentMs > Timings.pongWithinMs)", needs: shortSilence },
  { file: watch, line: "if (silentMs > mostMs)", needs: longAlone },
  { file: watch, line: "if (this.#unheard.size === 0)", excuse: afterReconnect },
  {
    file: links,
    line: "if (now - link.lastSeen <= Timings.pingAfterMs)",
    needs: alone("kill worker", "freeze worker")
  },
  {
    file: publications,
    line: "if (hasWaited(publication.confirmingSince",
    excuse: `ingress asks more often whether a stream has its jobs, and ${rates}`
  },
  {
    file: publications,
    line: "if (version === 2 || !pool.isDeserted",
    excuse: "only workers of version 0.1.0 need it, which announce nothing and are not simulated"
  },
  { file: publications, line: "if (version > 2)", excuse: afterReconnect },
  { file: publications, line: "if ((state?.num_waiting", needs: absentWorker },
  { file: publications, line: "if (now - since <= overtakenForMs", needs: shortSilence },
  { file: publications, line: "if (hasWaited(queue.askingSince", excuse: rates },
  { file: publications, line: "if (publication.number < queue.claimedUpTo)", needs: absentWorker },
  { file: publications, line: "if (version <= pool.version)", needs: absentWorker },
  { file: publications, line: "if (since === undefined", needs: lastClaimsLost },
  {
    file: publications,
    line: "if (now >= confirmAt",
    excuse: "ingress asks about each waiting job at every tick instead, five times a second"
  },
  { file: publications, line: "if (state.state !== \"Published\") return", needs: alone("jobs forget newest") },
  {
    file: publications,
    line: "if (storedAs === undefined || now < queue.askAt)",
    excuse: "ingress asks for the state of the queue more often, and nearly always when it needs that"
  },
  { file: publications, line: "if (delivered === undefined) return", needs: lastJobAway },
  { file: publications, line: "if (each.pool !== pool", needs: lastJobAway },
  { file: publications, line: "if (publication.", needs: lastClaimsLost },
  { file: publications, line: "if (other === queue", excuse: lateAnswers },
  { file: publications, line: "if (job.state.state !== \"Published\" || job.state.attempt", needs: lastClaimsLost },
  { file: publications, line: "if (!queue.awaitsAnswer) return", excuse: lateAnswers },
  { file: publications, line: "if (hasNoAnswer)", excuse: lateAnswers },
  { file: publications, line: "if (hasNoAnswer", needs: frozenLeader },
  { file: publications, line: "if (verdict === \"full\")", needs: fault("full stream") },
  {
    file: publications,
    line: "if (verdict === \"duplicate\")",
    excuse:
      "a job that waits in the stream counts as overtaken up to two seconds later, or one that was lost up to two seconds earlier"
  },
  { file: receiver, line: "if (link !== undefined) link.server", needs: frozenServers },
  {
    file: receiver,
    line: "if (link.acknowledged < link.next)",
    excuse: "workers ask half a second later, and the answer acknowledges as well"
  },
  { file: receiver, line: "else if (link.heardAt < before)", needs: lateBundles },
  { file: receiver, line: "if (number", needs: cuts },
  { file: receiver, line: "if (link.asked.from", needs: cuts },
  { file: sender, line: "if (link.resent.from", needs: cuts },
  { file: sender, line: "if (each < number)", needs: cuts },
  { file: sender, line: "if (left <= 0) return", needs: longAndCut },
  { file: sender, line: "if (link !== undefined) this.#giveUp", needs: alone("deploy worker") },
  {
    file: sender,
    line: "if (link.kept.length === 0) link.sentAt",
    excuse: "ingress is asked for an acknowledgement earlier"
  },
  { file: sender, line: "if (size > 0 && size", needs: extremes },
  { file: sender, line: "if (this.#keptBytes === 0)", needs: alone("deploy worker") },
  { file: sender, line: "if (link.kept.length > 0 && silentMs", needs: idle },
  { file: sender, line: "else if (link.kept.length === 0", needs: rests },
  {
    file: reply,
    line: "if (this.#claimed && !this.#over) this.claim(this.#redispatch)",
    excuse: "the first frame replaces a lost claim"
  },
  {
    file: reply,
    line: "if (refused) this.#answerClaim",
    excuse: "the interruption ends what waits for the claim, too"
  },
  { file: reply, line: "if (redispatch !== this.#asked.redispatch", needs: version2 },
  { file: reply, line: "if (this.#over || this.#options.now() - this.#lastSent", needs: longAlone },
  { file: reply, line: "this.#send({ type: \"heartbeat\"", needs: longAlone },
  { file: reply, line: "this.#send({ type: \"error\"", needs: weather },
  { file: reply, line: "this.#send({ type: \"waits\"", excuse: parking },
  { file: reply, line: "if (!this.#over) this.#send({ type: \"works\"", excuse: parking },
  { file: reply, line: "if (this.#over) return", needs: weather },
  { file: reply, line: "if (this.#written < this.#limit", needs: extremes },
  { file: server, line: "if (this.#held.size === 0)", needs: deployWithoutUsage },
  { file: server, line: "if (this.#ended.has(key)", needs: lostEnds },
  { file: server, line: "if (reply.isCommitted) this.#remember", needs: lostEnds },
  { file: server, line: "if (now - this.#forgottenAt", needs: lostEnds },
  { file: server, line: "if (this.#running.size === 0) this.#onIdle", needs: alone("deploy worker") },
  {
    file: server,
    line: "if (isHeld) {",
    excuse: "the slot of a job whose event is not stored yet is free as soon as that is, which takes a millisecond"
  },
  {
    file: server,
    line: "if (isConnected()) yield* this.#nats.flush",
    excuse: "what a closing worker has sent was acknowledged before"
  },
  {
    file: server,
    line: "if (this.#bundles.ask(ingress)) return",
    excuse:
      "heartbeats show as well that a worker lives; one that has forgotten its ingress looks frozen, which costs two seconds"
  },
  { file: server, line: "if (since === undefined) {", needs: orphans },
  {
    file: server,
    line: "} else if (now - since >= Timings.ingressGoneAfterMs)",
    needs: cutWhileBusy
  },
  { file: server, line: "if (now - since > Timings.ingressGoneAfterMs", needs: orphans },
  { file: server, line: "if (reply.ingress === ingress) reply.abandon()", needs: orphans },
  { file: server, line: "if (control.type === \"noResponders\")", needs: orphans },
  { file: server, line: "if (this.#nats.isSettled()) this.#missing", needs: orphans },
  { file: server, line: "if (this.#nats.isConnected()) {", needs: lostGo },
  {
    file: server,
    line: "if (!isConnected()) return",
    below: "const { connection",
    excuse:
      "what a closing worker has sent is lost only if a connection breaks at the same moment, which may cost the worker anyway"
  },
  { file: server, line: "if (!isConnected()) return", needs: alone("deploy worker") },
  {
    file: server,
    line: "if (job.bodySize <= smallBodyBytes)",
    excuse: "claims leave a millisecond earlier or later, and no simulated body kills its worker in that time"
  },
  { file: server, line: "if (!reply.isOver) reply.fail", needs: deploysOfAll },
  { file: server, line: "if (job.body === undefined)", needs: bodies },
  { file: source, line: "if (this.#stopped) return", below: "watch()", needs: alone("consumer forgets pulls") },
  { file: source, line: "if (this.#isQuiet(each)) quiet++", needs: version2 },
  {
    file: source,
    line: "if (isNews || this.#inFlight === 1)",
    excuse: "a worker that has rested requests jobs for its free slots with its next check, 250 ms later at most"
  },
  { file: source, line: "if (!isHere || this.#parked", excuse: parking },
  { file: source, line: "if (slot !== \"parked\") return", excuse: parking },
  {
    file: source,
    line: "if (slot === \"returned\")",
    excuse: "it decides only which jobs beyond the slots go back to the queue"
  },
  {
    file: pulls,
    line: "if (this.#subscription === undefined || !this.#nats",
    below: "watch()",
    needs: alone("consumer forgets pulls")
  },
  { file: pulls, line: "if (isCurrent) {", needs: steady },
  { file: pulls, line: "if (headers === undefined", needs: idle },
  { file: pulls, line: "if (!this.#hasLeader) {", needs: peace },
  { file: writer, line: "if (this.#waiting.size > 0) {", needs: deployWithoutUsage },
  { file: writer, line: "if (this.#waiting.size === 0) this.#onEmpty", needs: deployWithoutUsage },
  { file: writer, line: "if (page === undefined ||", needs: peace },
  { file: writer, line: "if (message.data.length === 0)", needs: peace },
  { file: writer, line: "if (now - page.sentAt", needs: fault("lost confirmations", "cut worker", "kill nats") },
  { file: links, line: "if (link.jobs.size === 0)", needs: longAlone },
  { file: life, line: "if (!job.reply.isOver)", needs: leavers },
  { file: life, line: "if (error._tag === \"Cancelled\")", needs: weather },
  {
    file: life,
    line: "if (mayBeSent(dependencies, job)) meter.cancelled()",
    needs: fault("kill worker", "freeze worker", "hold worker")
  },
  { file: life, line: "else if (delivery === 2 ||", needs: heldEnds },
  { file: pool, line: "if (isInterrupted)", excuse: rates },
  { file: pool, line: "if (rests || ms > longestTickMs)", excuse: rates }
]

interface Line extends Switch {
  /** The index of the line, from 0. */
  readonly at: number
  readonly fault: Fault
}

const linesOf = (file: string): ReadonlyArray<Omit<Line, "number">> =>
  textOf(file).split("\n").flatMap((line, at, lines) => {
    const fault = faultOf(line)
    if (fault === undefined) return []
    const above = lines[at - 1]?.trimStart() ?? ""
    const isOf = (note: Note) =>
      note.file === file && line.trimStart().startsWith(note.line) && above.startsWith(note.below ?? "")
    const { excuse, needs } = notes.find(isOf) ?? {}
    return [{ name: `${file}:${at + 1} ${fault.does}`, file, at, fault, excuse, needs }]
  })

const lines: ReadonlyArray<Line> = files.flatMap(linesOf).map((line, at) => ({ ...line, number: at + 1 }))

export const mechanical: ReadonlyArray<Switch> = lines

for (const { file, line } of notes) {
  if (!textOf(file).includes(line)) throw new Error(`${file} has no line "${line}" any more`)
}

/** The text of a file with all its faults, one of which `globalThis.hasMutant` switches on; `undefined` if it has none. */
export const switched = (file: string): string | undefined => {
  const own = lines.filter((line) => line.file === file)
  if (own.length === 0) return undefined
  const text = textOf(file).split("\n")
  for (const { at, fault, number } of own) text[at] = fault.line(`globalThis.hasMutant(${number})`)
  return text.join("\n")
}

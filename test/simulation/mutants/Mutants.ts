/**
 * Faults put into the gateway's code, to show that the simulation can fail: those of the past by hand, others mechanically.
 * Each replaces one text of one file.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"

export interface Mutant {
  readonly name: string
  /** From the project's folder. */
  readonly file: string
  readonly from: string
  readonly to: string
}

const project = join(import.meta.dirname, "../../..")

const server = "shared/bus/worker/JobServer.ts"
const reply = "shared/bus/worker/JobReply.ts"
const source = "shared/bus/worker/JobSource.ts"
const tracker = "shared/bus/ingress/JobTracker.ts"
const links = "shared/bus/ingress/WorkerLinks.ts"
const watch = "shared/bus/ingress/WorkerWatch.ts"
const publications = "shared/bus/ingress/Publications.ts"
const receiver = "shared/bus/ingress/BundleReceiver.ts"
const sender = "shared/bus/worker/BundleSender.ts"
const pulls = "shared/bus/worker/PullRequests.ts"
const state = "shared/bus/protocol/JobState.ts"
const connection = "shared/nats/Nats.ts"
const writer = "shared/nats/EventWriter.ts"
const life = "shared/worker/JobLife.ts"
const taskLife = "services/video/TaskLife.ts"
const taskUsage = "services/video/TaskUsage.ts"
const bucket = "shared/nats/KeyValue.ts"
const ledger = "shared/limits/Ledger.ts"
const lease = "shared/limits/ReplicaLease.ts"

/** Faults of the past, put back. */
export const past: ReadonlyArray<Mutant> = [
  {
    name: "a worker forgets the paid jobs that it has ended",
    file: server,
    from: "if (this.#ended.has(key) || this.#endedBefore.has(key)) return job.acknowledge()",
    to: ""
  },
  {
    name: "a paid call does not wait for ingress",
    file: server,
    from: "reply.isCommitted ? Effect.void : claimAndWait(reply, \"mayHaveBeenSent\")",
    to: "reply.isCommitted ? Effect.void : Effect.sync(() => reply.claim(\"mayHaveBeenSent\"))"
  },
  {
    name: "a weaker claim takes back that a call may have been sent",
    file: state,
    from: "state.redispatch === \"mayHaveBeenSent\" ? { ...event, redispatch: \"mayHaveBeenSent\" } : event",
    to: "event"
  },
  {
    name: "a job that may have been sent gets another attempt",
    file: state,
    from: "if (state.redispatch === \"mayHaveBeenSent\" || state.attempt >= maxAttempts)",
    to: "if (state.attempt >= maxAttempts)"
  },
  {
    name: "an overtaken job is not published again",
    file: state,
    from: "return state.attempt < maxAttempts ? publish(state.attempt + 1, state.losses) : stay(state)",
    to: "return stay(state)"
  },
  {
    name: "one 503 means that a worker is gone",
    file: links,
    from: "this.#now() - link.missingSince >= Timings.workerGoneAfterMs",
    to: "true"
  },
  {
    name: "a stalled server makes workers look lost",
    file: watch,
    from: "return this.#askedAt !== undefined && this.#options.now() - this.#askedAt > stalledMs",
    to: "return false"
  },
  {
    name: "a job's deadline follows the wall clock",
    file: tracker,
    from: "this.#now = monotonicMs(clock)",
    to: "this.#now = () => clock.currentTimeMillisUnsafe()"
  },
  {
    name: "a worker drops jobs that look too old",
    file: server,
    from: "if (job.body !== undefined) return this.#run(key, job)",
    to: "if (this.#clock.currentTimeMillisUnsafe() > job.deadline) return job.acknowledge()\n"
      + "    if (job.body !== undefined) return this.#run(key, job)"
  },
  { name: "lost bundles are not sent again", file: sender, from: "if (each < number) continue", to: "continue" },
  {
    name: "a resend skips a bundle",
    file: sender,
    from: "if (each < number) continue",
    to: "if (each <= number) continue"
  },
  {
    name: "a bundle counts twice",
    file: receiver,
    from: "if (number < link.next) return { isNext: false, receipt: undefined }",
    to: "if (number < link.next) return { isNext: true, receipt: undefined }"
  },
  {
    name: "a missing bundle is not noticed",
    file: receiver,
    from: "if (number > link.next) return { isNext: false, receipt: this.#request(link) }",
    to: "link.next = Math.max(link.next, number)"
  },
  {
    name: "more is acknowledged than has arrived",
    file: receiver,
    from: "return { type: \"ack\", number: link.next }",
    to: "return { type: \"ack\", number: link.next + 1 }"
  },
  {
    name: "a worker does not ask about unacknowledged bundles",
    file: sender,
    from: "if (link.kept.length > 0 && silentMs >= unacknowledgedMs) this.ask(link.ingress)",
    to: "if (link.kept.length > 0) continue"
  },
  {
    name: "a forgotten link starts from the first number again",
    file: sender,
    from: "this.#first = Math.max(this.#first, link.next)",
    to: ""
  },
  {
    name: "workers behind a frozen server of NATS are lost",
    file: watch,
    from: "const mostMs = this.#isServerSuspected(link) ? Timings.serverChangeWithinMs : Timings.pongWithinMs",
    to: "const mostMs = Timings.pongWithinMs"
  },
  {
    name: "a full window waits for a job that was delivered to a dead worker",
    file: publications,
    from: "this.#askForDelivery(job, now)",
    to: ""
  },
  {
    name: "a client stays with a frozen server of NATS",
    file: connection,
    from: "if (Option.isSome(answer) || wasStalled || !isConnected()) return",
    to: "if (wasStalled || isConnected()) return"
  },
  {
    name: "an election makes ingress reject requests",
    file: "shared/bus/ingress/JobPool.ts",
    from: "this.#stalledUntil = now + stalledForMs",
    to: ""
  },
  {
    name: "a closing worker does not wait for its events",
    file: server,
    from: "yield* Effect.timeoutOption(this.#released.await, flushWithinMs)",
    to: ""
  },
  {
    name: "a job is acknowledged before its event is stored",
    file: server,
    from: "if (isHeld || !hasEnded) return",
    to: "if (!hasEnded) return"
  },
  { name: "an event is sent once", file: writer, from: "if (!maySend || now", to: "if (maySend || now" },
  {
    name: "a job counts as lost while its worker lives",
    file: life,
    from: "else if (delivery === 2) job.pulled.giveBack(meteringMs)\n      else meter.lost()",
    to: "else meter.lost()"
  },
  {
    name: "a job whose ingress is gone counts as metered",
    file: life,
    from: "return Effect.onError(claiming, refused)",
    to: "return Effect.tapError(claiming, () => refused(Cause.empty))"
  },
  {
    name: "a job of a worker that has just died is acknowledged",
    file: server,
    from: "if (reply.isTaken) job.giveBack(takenMs)\n      else job.acknowledge()",
    to: "job.acknowledge()"
  },
  {
    name: "a worker that drains reads only the oldest version",
    file: source,
    from: "return this.#version\n",
    to: "return this.#pulling ? this.#version : 2\n"
  },
  { name: "the first call of a repeated job is metered", file: life, from: " && !reply.isMoved)", to: ")" },
  {
    name: "an unclaimed job is not confirmed",
    file: publications,
    from: "if (now >= job.confirmAt) this.#confirm(job)",
    to: ""
  },
  {
    name: "forgotten pull requests are not noticed",
    file: pulls,
    from: "if (this.#outstanding > 0 && now - this.#lastHeard > silenceMs) return this.begin()",
    to: ""
  },
  {
    name: "pull requests that went with a leader count as standing",
    file: pulls,
    from: "first !== undefined && first.until < now",
    to: "first !== undefined && first.until < 0"
  },
  {
    name: "credit is sent once",
    file: tracker,
    from: "if (job.taken > 0) this.#sendCredit(job)",
    to: ""
  },
  {
    name: "a worker reports no progress to JetStream",
    file: source,
    from: "if (held) outbox.publish(subject, inProgress)",
    to: ""
  },
  {
    name: "a client that leaves does not stop its call",
    file: reply,
    from: "this.#options.onCancel()",
    to: ""
  },
  {
    name: "silences do not restart after a stall",
    file: tracker,
    from: "if (wasStalled) this.#workers.links.resetSilences()",
    to: ""
  },
  {
    name: "a task whose record is not known yet is dropped",
    file: taskLife,
    from: "error.refusal === \"unknown\" && begun - job.publishedAt < unknownForMs",
    to: "error.refusal === \"unknown\" && begun < 0"
  },
  {
    name: "a task whose end is not known yet has no usage",
    file: taskUsage,
    from: "(task) => task !== undefined && hasEnded(task.status),",
    to: "() => true,"
  },
  {
    name: "a task that was started is started again",
    file: taskLife,
    from: "return provider?.mayRepeat === true ? undefined : yield* unconfirmed(providerTask.provider)",
    to: "return undefined"
  },
  {
    name: "a task is run without end",
    file: taskLife,
    from: "if (owned.current().losses >= maxLosses) {",
    to: "if (owned.current().losses > 100) {"
  },
  {
    name: "a watch that has missed a change goes on",
    file: bucket,
    from: "if (state.messages > 0 && seen < state.last_seq) broken(\"the watch has missed a change\")",
    to: ""
  },
  {
    name: "a write does not compare the revision",
    file: bucket,
    from: "Option.some(await bucket.update(key, value, revision))",
    to: "Option.some(await bucket.put(key, value))"
  },
  {
    name: "other replicas' leases do not count",
    file: ledger,
    from: "const free = terms.limit - sum(used.values()) - sum(others.map(({ units }) => units)) - keep",
    to: "const free = terms.limit - sum(used.values()) - keep"
  },
  {
    name: "units that were used are not reported",
    file: lease,
    from: "used: new Map(this.#used),",
    to: "used: new Map(),"
  },
  {
    name: "a request that has ended keeps its unit",
    file: lease,
    from: "if (!isWindow) this.#release(-more)",
    to: "if (!isWindow) return"
  }
]

/** The files whose guards are negated and whose messages are dropped one by one. */
const mutated = [
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
  "shared/bus/ingress/JobPool.ts"
]

const guard = /^( *)((?:\} else |else )?if) \((.+)\) ((?:return|continue|this|job|reply|for|throw|\{).*)$/
const message = /^( *)((?:return )?(?:this\.#)?(?:[\w.#]+\.)?(?:outbox|#outbox)\.publish\(.*\)|this\.#send\(.*\))$/

/** One mutant per guard and per message that is sent in one line. */
export const mechanical = (): ReadonlyArray<Mutant> =>
  mutated.flatMap((file) => {
    const lines = readFileSync(join(project, file), "utf8").split("\n")
    return lines.flatMap((line, at): ReadonlyArray<Mutant> => {
      const [, indent, word, condition, rest] = guard.exec(line) ?? []
      const sent = message.exec(line)
      const where = `${file}:${at + 1}`
      // with its neighbours, so that the text is unique
      const around = (to: string) => ({
        from: lines.slice(Math.max(0, at - 2), at + 3).join("\n"),
        to: [...lines.slice(Math.max(0, at - 2), at), to, ...lines.slice(at + 1, at + 3)].join("\n")
      })
      if (condition !== undefined) {
        return [{
          name: `${where} negates ${condition}`,
          file,
          ...around(`${indent}${word} (!(${condition})) ${rest}`)
        }]
      }
      if (sent === null) return []
      return [{ name: `${where} drops ${sent[2]}`, file, ...around(line.includes("return") ? `${sent[1]}return` : "") }]
    })
  })

/** The file's text with the fault. Fails if the code has changed and the mutant with it. */
export const apply = ({ file, from, name, to }: Mutant): string => {
  const text = readFileSync(join(project, file), "utf8")
  if (text.split(from).length !== 2) throw new Error(`the mutant "${name}" does not fit ${file} any more`)
  return text.replace(from, () => to)
}

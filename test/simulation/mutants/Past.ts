/** Faults of the past, put back: each replaces one text of one file. */
import {
  answerWork,
  bucket,
  connect,
  connection,
  gate,
  history,
  holdDesk,
  lease,
  ledger,
  life,
  links,
  occupancy,
  pool,
  publications,
  pulls,
  receiver,
  recent,
  reply,
  sender,
  server,
  source,
  state,
  taskState,
  taskUsage,
  textOf,
  tracker,
  usageEvent,
  watch,
  writer
} from "./Files.ts"
import type { Patch } from "./Mutants.ts"
import * as Needs from "./Needs.ts"

export const past: ReadonlyArray<Patch> = [
  {
    name: "a worker announces no free slots until it knows that its queue exists",
    file: server,
    from: "this.source.takesJobs()",
    to: "this.source.isReady()",
    needs: Needs.busyFreeze
  },
  {
    name: "a worker forgets the paid jobs that it has ended",
    file: server,
    from: "if (this.#ended.has(key) || this.#endedBefore.has(key)) return job.acknowledge()",
    to: "",
    needs: Needs.lostEnds
  },
  {
    name: "a paid call does not wait for ingress",
    file: server,
    from: "reply.isCommitted ? Effect.void : claimAndWait(reply, \"mayHaveBeenSent\")",
    to: "reply.isCommitted ? Effect.void : Effect.sync(() => reply.claim(\"mayHaveBeenSent\"))",
    needs: Needs.lostClaim
  },
  {
    name: "a weaker claim takes back that a call may have been sent",
    file: state,
    from: "state.redispatch === \"mayHaveBeenSent\" ? { ...event, redispatch: \"mayHaveBeenSent\" } : event",
    to: "event",
    needs: Needs.lateAgreements
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
    to: "return stay(state)",
    needs: Needs.lastClaimsLost
  },
  {
    name: "one 503 means that a worker is gone",
    file: links,
    from: "this.#now() - link.missingSince >= Timings.workerGoneAfterMs",
    to: "true",
    needs: Needs.longAlone
  },
  {
    name: "a stalled server makes workers look lost",
    file: watch,
    from: "return this.#askedAt !== undefined && this.#options.now() - this.#askedAt > stalledMs",
    to: "return false",
    needs: Needs.alone("freeze nats")
  },
  {
    name: "a job's deadline follows the wall clock",
    file: tracker,
    from: "this.#now = monotonicMs(clock)",
    to: "this.#now = () => clock.currentTimeMillisUnsafe()",
    needs: Needs.clockWhileWaiting
  },
  {
    name: "a worker drops jobs that look too old",
    file: server,
    from: "if (job.body !== undefined) return this.#run(key, job)",
    to: "if (this.#clock.currentTimeMillisUnsafe() > job.deadline) return job.acknowledge()\n"
      + "    if (job.body !== undefined) return this.#run(key, job)",
    needs: Needs.alone("clock of worker", "clock of ingress")
  },
  {
    name: "lost bundles are not sent again",
    file: sender,
    from: "if (each < number) continue",
    to: "continue",
    needs: Needs.cuts
  },
  {
    name: "a resend skips a bundle",
    file: sender,
    from: "if (each < number) continue",
    to: "if (each <= number) continue",
    needs: Needs.cuts
  },
  {
    name: "a bundle counts twice",
    file: receiver,
    from: "if (number < link.next) return { isNext: false, receipt: undefined }",
    to: "if (number < link.next) return { isNext: true, receipt: undefined }",
    needs: Needs.slowResends
  },
  {
    name: "a missing bundle is not noticed",
    file: receiver,
    from: "if (number > link.next) return { isNext: false, receipt: this.#request(link) }",
    to: "link.next = Math.max(link.next, number)",
    needs: Needs.cuts
  },
  {
    name: "more is acknowledged than has arrived",
    file: receiver,
    from: "return { type: \"ack\", number: link.next }",
    to: "return { type: \"ack\", number: link.next + 1 }",
    needs: Needs.slowBundles
  },
  {
    name: "a worker does not ask about unacknowledged bundles",
    file: sender,
    from: "if (link.kept.length > 0 && silentMs >= unacknowledgedMs) this.ask(link.ingress)",
    to: "if (link.kept.length > 0) continue",
    excuse:
      "an ingress that waits for an answer pings the silent worker, whose reply asks as well; without open jobs only memory is kept"
  },
  {
    name: "a forgotten link starts from the first number again",
    file: sender,
    from: "this.#first = Math.max(this.#first, link.next)",
    to: "",
    needs: Needs.rests
  },
  {
    name: "workers behind a frozen server of NATS are lost",
    file: watch,
    from: "const mostMs = this.#isServerSuspected(link) ? Timings.serverChangeWithinMs : Timings.pongWithinMs",
    to: "const mostMs = Timings.pongWithinMs",
    excuse: "workers leave a frozen server within 1.5 s (`leaveStalledServer`) unless they cannot connect at once"
  },
  {
    name: "a full window waits for a job that was delivered to a dead worker",
    file: publications,
    from: "this.#askForDelivery(job, now)",
    to: "",
    needs: Needs.lastClaimsLost
  },
  {
    name: "a client stays with a frozen server of NATS",
    file: connection,
    from: "if (hasAnswered || isSending || wasStalled || !isConnected()) return",
    to: "if (wasStalled || isConnected()) return",
    needs: Needs.cluster(Needs.alone("freeze nats"))
  },
  // seed 9200178
  {
    name: "a client takes the server that it starts with for the only one",
    file: connect,
    from: "remember(connection, all.servers)",
    to: "",
    needs: Needs.startsAtOneServer
  },
  {
    name: "an election makes ingress reject requests",
    file: pool,
    from: `    this.#stalledUntil = now + stalledForMs
    this.#wasStalled = true
`,
    to: "",
    needs: Needs.busyElection
  },
  {
    name: "a closing worker does not wait for its events",
    file: server,
    from: "yield* Effect.timeoutOption(this.#released.await, flushWithinMs)",
    to: "",
    excuse: "the writer of the events waits for them as well when it closes, and jobs are acknowledged after that"
  },
  {
    name: "a job is acknowledged before its event is stored",
    file: server,
    from: "if (isHeld || !hasEnded) return",
    to: "if (!hasEnded) return",
    needs: Needs.killWithoutUsage
  },
  {
    name: "an event is sent once",
    file: writer,
    from: "if (now - page.sentAt < confirmMs || resent",
    to: "if (now >= page.sentAt || resent",
    needs: Needs.fault("lost confirmations", "cut worker", "kill nats")
  },
  {
    name: "a job counts as lost while its worker lives",
    file: life,
    from:
      "else if (delivery === 2 || (!job.reply.isOver && delivery < maxDeliveries)) job.pulled.giveBack(meteringMs)\n      else meter.lost()",
    to: "else meter.lost()",
    excuse: "the event that the worker stores later replaces the lost one"
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
    to: "return this.#pulling ? this.#version : 2\n",
    needs: Needs.alone("deploy worker")
  },
  {
    name: "the first call of a repeated job is metered",
    file: life,
    from: " && !reply.isMoved)",
    to: ")",
    needs: Needs.heldStarts
  },
  {
    name: "an unclaimed job is not confirmed",
    file: publications,
    from: "queue.probeAt = now + probeEveryMs\n      this.#confirm(job)",
    to: "queue.probeAt = now + probeEveryMs",
    needs: Needs.alone("jobs forget newest")
  },
  {
    name: "pull requests that went with a leader count as standing",
    file: pulls,
    from: "if (first === undefined || first.until >= this.#now()) return this.schedule()",
    to: "if (first === undefined || first.until >= 0) return this.schedule()",
    needs: Needs.alone("consumer forgets pulls", "no consumer leader", "kill nats")
  },
  {
    name: "answers to forgotten pull requests count",
    file: pulls,
    from: "return isCurrent ? this.#status(message) : undefined",
    to: "return this.#status(message)",
    needs: Needs.fault("hold worker", "freeze nats", "slow worker")
  },
  {
    name: "jobs for replaced pull requests are lost",
    file: pulls,
    from: "void this.#drain(former), lateMs)",
    to: "void this.#drain(former), 0)",
    needs: Needs.cluster(Needs.aloneWith(["slow routes"], { ms: 8_000 }))
  },
  {
    name: "credit is sent once",
    file: tracker,
    from: "if (job.taken > 0) this.#sendCredit(job)",
    to: "",
    needs: Needs.lostCredit
  },
  {
    name: "a worker reports no progress to JetStream",
    file: source,
    from: "outbox.publish(subject, inProgress)",
    to: "",
    needs: Needs.extremes
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
    to: "",
    needs: Needs.frozenAfterPing
  },
  {
    name: "a task whose record is not known yet is dropped",
    file: taskState,
    from: "refusal === \"unknown\" && ageMs >= unknownForMs",
    to: "refusal === \"unknown\"",
    needs: Needs.staleRecords
  },
  {
    name: "a task whose end is not known yet has no usage",
    file: taskUsage,
    from: "(task) => task !== undefined && hasEnded(task.status),",
    to: "() => true,",
    needs: Needs.staleRecords
  },
  {
    name: "the event of a worker that seemed lost does not count",
    file: recent,
    from: "return last\n",
    to: "return undefined",
    needs: Needs.isolatedEvents
  },
  {
    name: "the event of a worker that had to stop hides that of the repeated job",
    file: usageEvent,
    from: "event.error === \"WorkerLost\" ? 1 : 2",
    to: "2",
    needs: Needs.outlastDeploys
  },
  {
    name: "a task that was started is started again",
    file: taskState,
    from: "return provider?.mayRepeat === true ? { step: \"begin\" } : { step: \"unconfirmed\", provider: name }",
    to: "return { step: \"begin\" }",
    needs: Needs.killedAtStarts
  },
  {
    name: "a task is run without end",
    file: taskState,
    from: "losses >= most",
    to: "losses > 100",
    needs: Needs.tasks
  },
  {
    name: "an answer in the background that may be paid for is asked for again",
    file: answerWork,
    from: "if (next.step === \"unconfirmed\") return yield* unconfirmed(next.provider)",
    to: "",
    needs: Needs.killedAtCalls
  },
  {
    name: "an answer in the background is asked for without a record",
    file: answerWork,
    from: "=> claimed.record({ event: \"starting\", provider: name, model })",
    to: "=> Effect.void",
    needs: Needs.answers
  },
  {
    name: "the units of a task's work do not return",
    file: holdDesk,
    from: "held.get(task)?.(used)",
    to: "",
    needs: Needs.answers
  },
  {
    name: "a watch that has missed a change goes on",
    file: bucket,
    from: "if (!loaded || (state.messages > 0 && seen < state.last_seq)) broken(\"the watch has missed a change\")",
    to: "",
    needs: Needs.fault("gap in watches")
  },
  {
    name: "a write does not compare the revision",
    file: bucket,
    from: "Option.some(await bucket.update(key, value, revision))",
    to: "Option.some(await bucket.put(key, value))",
    needs: Needs.limits
  },
  {
    name: "other replicas' leases do not count",
    file: ledger,
    from: "const free = terms.limit - sum(used.values()) - sum(others.map(({ units }) => units)) - keep",
    to: "const free = terms.limit - sum(used.values()) - keep",
    needs: Needs.limits
  },
  {
    name: "units that were used are not reported",
    file: lease,
    from: "used: new Map(this.#used),",
    to: "used: new Map(),",
    needs: Needs.limits
  },
  {
    name: "a request that has ended keeps its unit",
    file: lease,
    from: "if (!isWindow) this.#release(-more)",
    to: "if (!isWindow) return",
    needs: Needs.limits
  },
  // seed 2001614
  {
    name: "a request that ends after its replica returns a unit twice",
    file: lease,
    from: "if (this.#isClosed) return",
    to: "",
    needs: Needs.deployWithLimits
  },
  // seed 2000230
  {
    name: "jobs are in version 2 while there is no worker",
    file: occupancy,
    from: "if (this.#workers.size > 0) this.#version = this.#newest === this.#workers.size",
    to: "this.#version = this.#workers.size > 0 && this.#newest === this.#workers.size",
    needs: Needs.absentWorker
  },
  // seed 2001565
  {
    name: "a call that goes to another provider uses up a turn",
    file: gate,
    from: "if (turn !== undefined) pace.giveBack(candidate, turn)",
    to: "",
    needs: Needs.paced
  },
  // seed 30076
  {
    name: "events count as stored before they are sent again after an outage",
    file: writer,
    from: "if (!this.#nats.isSettled()) return void (this.#awayAt = now)",
    to: `if (!this.#nats.isSettled()) {
      for (const { onStored, since } of this.#waiting) {
        if (now - since > patienceMs) { for (const run of onStored.splice(0)) run() }
      }
      return
    }`,
    needs: Needs.lostEvents
  },
  // seed 26115157
  {
    name: "a worker that ends returns jobs at once that were delivered before",
    file: source,
    from: "this.#stopped && delivery.delivery > 1 ? watchMs : undefined",
    to: "undefined",
    needs: Needs.endsAtThirdDelivery
  },
  // seed 9204604
  {
    name: "an outage counts as time in which an event could be stored",
    file: writer,
    from: "now - Math.max(page.since, this.#awayAt) > patienceMs",
    to: "now - page.since > patienceMs",
    needs: Needs.refusedEvents
  },
  {
    name: "a request waits for a slow provider although the circuit of another may close",
    file: history,
    from: "const rested = candidates.find((candidate) => this.#restsUntil(candidate) < until)",
    to: "const rested = undefined as Candidate | undefined",
    needs: Needs.weather
  }
]

/** The file's text with the fault. Fails if the code has changed, so that the fault no longer applies. */
export const apply = ({ file, from, name, to }: Patch): string => {
  const text = textOf(file)
  if (text.split(from).length !== 2) throw new Error(`the mutant "${name}" does not fit ${file} any more`)
  return text.replace(from, () => to)
}

/**
 * Stands in for the kubelets of all nodes: runs the pods that are bound to them as processes, and reports their state.
 *
 * As in a cluster, a pod whose Secret, ConfigMap or claim is missing waits until it is there, and a deleted pod gets SIGTERM and its
 * grace period.
 */
import { DateTime, Deferred, Duration, Effect, FileSystem, Schedule, Stream } from "effect"
import { patch, remove, watch } from "../control-plane/Api.ts"
import { type ApiPod, pathOf } from "./ApiPod.ts"
import type { NatsPods } from "./NatsPods.ts"
import { readInputs } from "./PodInputs.ts"
import { isNats, type PodProcess, startService } from "./PodProcess.ts"

/** A pod from its start on a node until its deletion. */
export interface Life {
  readonly pod: ApiPod
  readonly deleted: Deferred.Deferred<void>
  /** Where it runs, as if each pod had an address. */
  readonly address: string
  /** The objects that it has waited for. */
  readonly missed: Set<string>
  process: PodProcess | undefined
  restarts: number
}

interface Status {
  readonly phase: "Pending" | "Running" | "Succeeded"
  readonly ready: boolean
  readonly state: object
}

/** Reports a change of state. The pod may be gone already. */
const report = Effect.fn("Kubelet.report")(function*(
  { address, pod, restarts }: Life,
  { phase, ready, state }: Status
) {
  const now = DateTime.formatIso(yield* DateTime.now)
  const status = ready ? "True" : "False"
  const [container] = pod.spec.containers
  yield* patch(`${pathOf(pod)}/status`, {
    status: {
      phase,
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: ["Ready", "ContainersReady"].map((type) => ({ type, status, lastTransitionTime: now })),
      containerStatuses: [{
        name: container?.name,
        image: container?.image,
        imageID: "",
        ready,
        restartCount: restarts,
        started: phase === "Running",
        state
      }]
    }
  }).pipe(Effect.ignore)
})

const waiting = (phase: "Pending" | "Running", reason: string, message: string): Status => ({
  phase,
  ready: false,
  state: { waiting: { reason, message } }
})

/** Reports each change of readiness, until interrupted. */
const reportReadiness = Effect.fnUntraced(function*(life: Life, process: PodProcess) {
  const startedAt = DateTime.formatIso(yield* DateTime.now)
  const running = (ready: boolean) => report(life, { phase: "Running", ready, state: { running: { startedAt } } })
  let reported = false
  yield* running(false)
  for (;;) {
    const { ready } = process
    if (ready !== reported) yield* running(ready)
    reported = ready
    yield* Effect.sleep("100 millis")
  }
})

/** Deletes a pod that has ended, as a kubelet does. */
const forget = (pod: ApiPod) =>
  remove(pathOf(pod), { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } }).pipe(Effect.ignore)

/** Runs its container until it ends or the pod is deleted; returns its exit, or `undefined` if it was deleted. */
const runOnce = Effect.fn("Kubelet.runOnce")(function*(life: Life, nats: NatsPods) {
  const fs = yield* FileSystem.FileSystem
  const { pod } = life
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "pod-" })
  const inputs = yield* readInputs(pod, folder).pipe(
    Effect.tapError(({ message }) => {
      if (life.missed.has(message)) return Effect.void
      life.missed.add(message)
      return report(life, waiting("Pending", "CreateContainerConfigError", message))
    }),
    Effect.retry(Schedule.spaced("500 millis"))
  )
  const process = yield* Effect.acquireRelease(
    Effect.promise(() => isNats(pod) ? nats.start(pod, inputs) : startService(pod, inputs, nats.url)),
    (process) => Effect.promise(() => process.end())
  )
  life.process = process
  yield* Effect.forkScoped(reportReadiness(life, process))
  return yield* Effect.promise(() => process.exited)
}, Effect.scoped)

const live = Effect.fn("Kubelet.live")(function*(life: Life, nats: NatsPods) {
  const { deleted, pod } = life
  const finish = Effect.gen(function*() {
    for (;;) {
      const exit = yield* runOnce(life, nats)
      if (exit === 0 && pod.spec.restartPolicy === "OnFailure") break
      life.restarts++
      yield* report(life, waiting("Running", "CrashLoopBackOff", `exited with ${exit}`))
      yield* Effect.sleep(Duration.seconds(Math.min(2 ** life.restarts, 30)))
    }
    const finishedAt = DateTime.formatIso(yield* DateTime.now)
    yield* report(life, {
      phase: "Succeeded",
      ready: false,
      state: { terminated: { exitCode: 0, reason: "Completed", finishedAt } }
    })
    yield* Deferred.await(deleted)
  })
  yield* Effect.raceFirst(finish, Deferred.await(deleted))
  yield* forget(pod)
})

/** Starts it for all nodes. Returns the pods that it has, each until it is deleted. */
export const startKubelet = Effect.fn("startKubelet")(function*(nats: NatsPods) {
  const lives = new Map<string, Life>()
  let addresses = 0
  yield* Effect.addFinalizer(() => Effect.promise(() => nats.remove()))
  const start = (pod: ApiPod) => {
    const life: Life = {
      pod,
      deleted: Deferred.makeUnsafe(),
      address: `10.1.${addresses >> 8}.${++addresses & 255}`,
      missed: new Set(),
      process: undefined,
      restarts: 0
    }
    lives.set(pod.metadata.uid, life)
    return live(life, nats).pipe(
      Effect.ensuring(Effect.sync(() => lives.delete(pod.metadata.uid))),
      Effect.forkScoped
    )
  }
  yield* watch<ApiPod>("/api/v1/pods").pipe(
    Stream.runForEach(Effect.fnUntraced(function*({ object: pod, type }) {
      const { metadata, spec, status } = pod
      const life = lives.get(metadata.uid)
      const isDeleted = type === "DELETED" || metadata.deletionTimestamp !== undefined
      if (life !== undefined && isDeleted) yield* Deferred.succeed(life.deleted, undefined)
      if (life !== undefined || spec.nodeName === undefined || type === "DELETED") return
      if (isDeleted) yield* forget(pod)
      else if (status?.phase === "Pending") yield* start(pod)
    })),
    Effect.repeat(Schedule.spaced("100 millis")),
    Effect.forkScoped
  )
  // at the end of the run no pod gets its grace period
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all([...lives.values()].map(({ process }) => process?.kill())))
  )
  return { lives: (): ReadonlyArray<Life> => [...lives.values()] }
})

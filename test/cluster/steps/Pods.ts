/**
 * The overlay `production` in a cluster of three zones: the guide's commands as written, then a drain and a rollout under traffic, and
 * a drain while NATS is away.
 *
 * Needs kube-controller-manager and kube-scheduler, too, and nats-server. A stand-in for the kubelets runs the pods as processes.
 */
import { Effect } from "effect"
import { check } from "../checks/Checks.ts"
import { Wrong } from "../checks/Wrong.ts"
import { read } from "../control-plane/Api.ts"
import { kubectl } from "../control-plane/Kubectl.ts"
import { names as nodes } from "../kubelet/Nodes.ts"
import {
  type Cluster,
  createKey,
  followGuide,
  namespace,
  servers,
  services,
  startCluster,
  until,
  untilReady
} from "./Cluster.ts"
import { during, type Requests } from "./Traffic.ts"

/** Processes start slowly on a busy machine. */
const readyWithinMs = 240_000

interface Scaled {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly minReplicaCount: number }
}

/** KEDA is not in this step: each pool gets its smallest size. */
const scale = Effect.gen(function*() {
  const path = `/apis/keda.sh/v1alpha1/namespaces/${namespace}/scaledobjects`
  const { items } = yield* read<{ readonly items: ReadonlyArray<Scaled> }>(path)
  for (const { metadata, spec } of items) {
    yield* kubectl(["scale", "-n", namespace, `--replicas=${spec.minReplicaCount}`, `deployment/${metadata.name}`])
  }
})

interface Autoscaled {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly minReplicas: number }
  readonly status?: { readonly currentReplicas?: number }
}

/** The controller looks every 15 seconds. */
const grownWithinMs = 60_000

/** Waits until every Deployment with a HorizontalPodAutoscaler has its smallest size. */
const untilGrown = Effect.gen(function*() {
  let small: ReadonlyArray<Autoscaled> = []
  const hasGrown = Effect.gen(function*() {
    const path = `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers`
    const { items } = yield* read<{ readonly items: ReadonlyArray<Autoscaled> }>(path)
    small = items.filter(({ spec, status }) => (status?.currentReplicas ?? 0) < spec.minReplicas)
    return small.length === 0
  })
  yield* until(hasGrown, () => `too small: ${small.map(({ metadata }) => metadata.name).join(", ")}`, grownWithinMs)
})

const told = Effect.fn("told")(function*({ answered, failed }: Requests, what: string) {
  if (failed.length > 0) return yield* new Wrong({ what: `${failed.length} requests failed: ${failed[0]}` })
  if (answered === 0) return yield* new Wrong({ what: "no request was answered" })
  return `${what}, ${answered} requests, none failed`
})

const drain = (node: string) =>
  kubectl(["drain", node, "--delete-emptydir-data", "--timeout=120s"]).pipe(
    Effect.andThen(kubectl(["uncordon", node]))
  )

const startServices = Effect.fn("startServices")(function*(cluster: Cluster) {
  yield* scale
  yield* untilGrown
  yield* untilReady(cluster, readyWithinMs)
  yield* createKey
  const used = new Set(cluster.lives().map(({ pod }) => pod.spec.nodeName))
  if (used.size < nodes.length) return yield* new Wrong({ what: `pods run only on ${[...used].join(", ")}` })
  return `${services(cluster).length} pods of the gateway and ${servers} of NATS, in ${used.size} zones`
})

const drainUnderTraffic = Effect.fn("drainUnderTraffic")(function*(cluster: Cluster) {
  const [node = ""] = nodes
  const moved = services(cluster).filter(({ pod }) => pod.spec.nodeName === node).length
  const requests = yield* during(cluster.lives, drain(node))
  yield* untilReady(cluster, readyWithinMs)
  return yield* told(requests, `${moved} pods moved`)
})

const rollOut = Effect.fn("rollOut")(function*(cluster: Cluster) {
  const roll = kubectl(["rollout", "restart", "-n", namespace, "deployment"]).pipe(
    Effect.andThen(kubectl(["rollout", "status", "-n", namespace, "deployment", "--timeout=180s"]))
  )
  const requests = yield* during(cluster.lives, roll)
  yield* untilReady(cluster, readyWithinMs)
  return yield* told(requests, `${services(cluster).length} pods replaced`)
})

const drainWithoutNats = Effect.fn("drainWithoutNats")(function*(cluster: Cluster) {
  yield* kubectl(["scale", "-n", "nats", "--replicas=0", "statefulset/nats"])
  const ready = () => services(cluster).filter(({ process }) => process?.ready === true)
  yield* until(
    Effect.sync(() => ready().length === 0),
    () => `still ready: ${ready().map(({ pod }) => pod.metadata.name).join(", ")}`,
    90_000
  )
  yield* drain(nodes[1] ?? "")
  return `all ${services(cluster).length} pods were unready, and none kept the machine`
})

export const pods = Effect.gen(function*() {
  const cluster = yield* startCluster
  const isInstalled = (yield* check("the guide's commands", followGuide)) &&
    (yield* check("all pods are ready", startServices(cluster)))
  if (!isInstalled) return
  yield* check("a machine is drained", drainUnderTraffic(cluster))
  yield* check("every Deployment is rolled out", rollOut(cluster))
  yield* check("a machine is drained while NATS is away and no pod is ready", drainWithoutNats(cluster))
}).pipe(Effect.scoped)

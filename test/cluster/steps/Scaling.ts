/**
 * KEDA in the cluster of the step `pods`: it scales video from no pod to two and back, by the demand that it reads from NATS, also after
 * the server that knows it was killed.
 *
 * Needs KEDA's operator and adapter, too.
 */
import { Effect, Schema } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { veryLongVideo } from "../../fixture/client/VideoClient.ts"
import { testKey } from "../../fixture/gateway/Gateway.ts"
import { check } from "../checks/Checks.ts"
import { Wrong } from "../checks/Wrong.ts"
import { type Conditioned, meets, patchCustom, read } from "../control-plane/Api.ts"
import { startKeda } from "../control-plane/Keda.ts"
import { componentOf } from "../kubelet/ApiPod.ts"
import { startNameProxy } from "../kubelet/NameProxy.ts"
import { monitoringPort } from "../kubelet/NatsPods.ts"
import { isNats } from "../kubelet/PodProcess.ts"
import { type Cluster, createKey, followGuide, namespace, startCluster, until, untilReady } from "./Cluster.ts"

/** Processes start slowly on a busy machine. */
const readyWithinMs = 240_000

/** KEDA asks NATS every 5 seconds, and the autoscaler asks KEDA every 15. */
const scaledWithinMs = 90_000

const scaledObjects = `/apis/keda.sh/v1alpha1/namespaces/${namespace}/scaledobjects`

/** The pods of NATS or of a component of the gateway that are ready. */
const ready = ({ lives }: Cluster, component: string) =>
  lives().filter(({ pod, process }) =>
    process?.ready === true && (component === "nats" ? isNats(pod) : componentOf(pod) === component)
  )

/** Video has no pod while idle, as in the overlay `minimal`, and shrinks at once. */
const idleAtOnce = patchCustom(`${scaledObjects}/video`, {
  spec: {
    minReplicaCount: 0,
    cooldownPeriod: 5,
    advanced: { horizontalPodAutoscalerConfig: { behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } } }
  }
})

interface ScaledObject extends Conditioned {
  readonly metadata: { readonly name: string }
}

/** Waits until KEDA has taken every pool. */
const untilTaken = Effect.gen(function*() {
  let others: ReadonlyArray<string> = []
  const areReady = Effect.gen(function*() {
    const { items } = yield* read<{ readonly items: ReadonlyArray<ScaledObject> }>(scaledObjects)
    others = items.filter((item) => !meets(item, "Ready")).map(({ metadata }) => metadata.name)
    return items.length > 0 && others.length === 0
  })
  yield* until(areReady, () => `KEDA has not taken ${others.join(", ")}`, scaledWithinMs)
})

const install = Effect.fn("install")(function*(cluster: Cluster) {
  const commands = yield* followGuide
  yield* idleAtOnce
  const addresses = () => ready(cluster, "nats").map(({ pod }) => cluster.nats.hosts.get(pod.metadata.name) ?? "")
  yield* startKeda(yield* startNameProxy(addresses))
  yield* untilTaken
  yield* untilReady(cluster, readyWithinMs)
  yield* createKey
  return `${commands}; every pool is KEDA's`
})

/** What KEDA tells the autoscaler of the demand for videos; `undefined` if it has no answer. */
const demand = Effect.gen(function*() {
  const metric = `/apis/external.metrics.k8s.io/v1beta1/namespaces/${namespace}/s0-nats-jetstream-JOBS_VIDEO`
  const selector = encodeURIComponent("scaledobject.keda.sh/name=video")
  const { items } = yield* read<{ readonly items: ReadonlyArray<{ readonly value: string }> }>(
    `${metric}?labelSelector=${selector}`
  )
  return items[0] === undefined ? undefined : Number(items[0].value)
}).pipe(Effect.orElseSucceed(() => undefined))

/** Requests to the first ready pod of ingress. */
const ask = Effect.fn("ask")(
  function*(cluster: Cluster, request: (path: string) => HttpClientRequest.HttpClientRequest) {
    const port = ready(cluster, "ingress")[0]?.process?.port
    const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient)
    return yield* client.execute(
      request(`http://127.0.0.1:${port}/v1/video/generations`).pipe(HttpClientRequest.bearerToken(testKey))
    )
  }
)

const Created = Schema.Struct({ task_id: Schema.String })

/** More than one pod is to make. */
const count = 3

const createVideos = (cluster: Cluster) =>
  Effect.forEach(
    Array.from({ length: count }),
    () =>
      ask(cluster, (url) => HttpClientRequest.post(url).pipe(HttpClientRequest.bodyJsonUnsafe(veryLongVideo))).pipe(
        Effect.flatMap(HttpClientResponse.schemaBodyJson(Created)),
        Effect.map(({ task_id }) => task_id)
      )
  )

const deleteVideo = (cluster: Cluster, id: string) => ask(cluster, (url) => HttpClientRequest.delete(`${url}/${id}`))

const untilPods = (cluster: Cluster, wanted: number) => {
  const seen = () => ready(cluster, "video").length
  return until(Effect.sync(() => seen() === wanted), () => `${seen()} pods of video, not ${wanted}`, scaledWithinMs)
}

/** Waits until KEDA reads the demand that there is. */
const untilSeen = Effect.gen(function*() {
  let last: number | undefined
  const isSeen = Effect.map(demand, (seen) => (last = seen) === count)
  yield* until(isSeen, () => `KEDA reads ${last}, not ${count}`, scaledWithinMs)
})

interface Accounts {
  readonly account_details: ReadonlyArray<{
    readonly stream_detail: ReadonlyArray<{
      readonly name: string
      readonly consumer_detail: ReadonlyArray<{ readonly name: string; readonly cluster: { readonly leader: string } }>
    }>
  }>
}

/** The server that leads the workers' consumer: the only one that knows how many jobs wait. */
const leader = Effect.fn("leader")(function*(cluster: Cluster) {
  const [host] = cluster.nats.hosts.values()
  const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient)
  const response = yield* client.get(`http://${host}:${monitoringPort}/jsz?acc=GATEWAY&consumers=true&config=true`)
  const { account_details } = (yield* response.json) as unknown as Accounts
  return account_details.flatMap(({ stream_detail }) => stream_detail)
    .find(({ name }) => name === "JOBS_VIDEO")
    ?.consumer_detail.find(({ name }) => name === "default")?.cluster.leader
})

const grow = Effect.fn("grow")(function*(cluster: Cluster) {
  const videos = yield* createVideos(cluster)
  yield* untilPods(cluster, 2)
  yield* untilSeen
  return videos
})

/** Kills the leader, whose server stays away for half a minute, as after many crashes. */
const killLeader = Effect.fn("killLeader")(function*(cluster: Cluster) {
  const name = yield* leader(cluster)
  const life = cluster.lives().find(({ pod }) => pod.metadata.name === name)
  if (life?.process === undefined) return yield* new Wrong({ what: `no pod leads the consumer: ${name}` })
  const { process } = life
  life.restarts = 4
  yield* Effect.promise(() => process.kill())
  yield* untilSeen
  const isAway = life.process?.ready !== true
  if (!isAway) return yield* new Wrong({ what: `KEDA did not read the demand before ${name} was back` })
  yield* until(Effect.sync(() => life.process?.ready === true), () => `${name} is not back`, scaledWithinMs)
  yield* untilSeen
  if (ready(cluster, "video").length !== 2) return yield* new Wrong({ what: "the number of pods has changed" })
  return `KEDA reads ${count} jobs without ${name} and after its return; the pods stay`
})

const shrink = Effect.fn("shrink")(function*(cluster: Cluster, videos: ReadonlyArray<string>) {
  yield* Effect.forEach(videos, (id) => deleteVideo(cluster, id))
  yield* untilPods(cluster, 0)
  return "no pod is left after the videos were deleted"
})

export const scaling = Effect.gen(function*() {
  const cluster = yield* startCluster
  if (!(yield* check("the guide's commands, and KEDA", install(cluster)))) return
  let videos: ReadonlyArray<string> = []
  yield* check("no pod without jobs", Effect.as(untilPods(cluster, 0), "no pod of video"))
  const grown = Effect.tap(grow(cluster), (made) => Effect.sync(() => videos = made))
  if (!(yield* check("more pods for more jobs", Effect.as(grown, `${count} videos, two pods`)))) return
  yield* check("NATS's leader is killed", killLeader(cluster))
  yield* check("no pod after the last job", shrink(cluster, videos))
}).pipe(Effect.scoped)

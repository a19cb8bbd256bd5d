/** KEDA's operator, and the adapter that serves its metrics to HorizontalPodAutoscalers, as processes of this machine. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, FileSystem } from "effect"
import { HttpClient } from "effect/http"
import { join } from "node:path"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import * as Programs from "../programs/Programs.ts"
import { create } from "./Api.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { start } from "./Server.ts"

const namespace = "keda"

const port = Effect.promise(freePort)

/** Writes the certificates with which operator and adapter know each other, under the names that both expect. */
const writeCertificates = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const { folder } = yield* ControlPlane
  const certificates = join(folder, "keda")
  yield* fs.makeDirectory(certificates)
  for (const [from, to] of [["ca.pem", "ca.crt"], ["server.pem", "tls.crt"], ["server.key", "tls.key"]] as const) {
    yield* fs.copyFile(join(folder, from), join(certificates, to))
  }
  return certificates
})

/** Tells the API server that the adapter on this port serves external metrics. */
const register = Effect.fn("Keda.register")(function*(port: number) {
  yield* create(`/api/v1/namespaces/${namespace}/services`, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "keda-metrics-apiserver" },
    spec: { type: "ExternalName", externalName: "localhost" }
  })
  yield* create("/apis/apiregistration.k8s.io/v1/apiservices", {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: "v1beta1.external.metrics.k8s.io" },
    spec: {
      service: { name: "keda-metrics-apiserver", namespace, port },
      group: "external.metrics.k8s.io",
      version: "v1beta1",
      groupPriorityMinimum: 100,
      versionPriority: 100,
      // its certificate is for this machine
      insecureSkipTLSVerify: true
    }
  })
})

/** Starts both, which reach NATS's monitoring through a proxy; they end with the scope. */
export const startKeda = Effect.fn("startKeda")(function*(proxy: string) {
  const { client, folder, kubeconfig } = yield* ControlPlane
  const program = yield* Programs.find(["keda-operator", "keda-adapter"])
  const certificates = yield* writeCertificates
  const [health, metrics, secure] = [yield* port, yield* port, yield* port]
  const env = {
    KUBECONFIG: kubeconfig,
    HOME: folder,
    POD_NAMESPACE: namespace,
    KEDA_CLUSTER_OBJECT_NAMESPACE: namespace,
    WATCH_NAMESPACE: "",
    HTTP_PROXY: proxy
  }
  yield* create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } })
  const local = Effect.flatMap(
    HttpClient.HttpClient,
    (client) => HttpClient.filterStatusOk(client).get(`http://127.0.0.1:${health}/readyz`)
  )
  yield* start({
    name: "keda-operator",
    program: program("keda-operator"),
    words: [
      "--metrics-bind-address=0",
      `--health-probe-bind-address=127.0.0.1:${health}`,
      `--metrics-service-bind-address=127.0.0.1:${metrics}`,
      `--cert-dir=${certificates}`,
      "--enable-webhook-patching=false",
      "--enable-apiservice-patching=false"
    ],
    env,
    ready: local.pipe(Effect.provide(NodeHttpClient.layerUndici)),
    within: "60 seconds"
  })
  yield* register(secure)
  yield* start({
    name: "keda-adapter",
    program: program("keda-adapter"),
    words: [
      ...["lister", "authentication", "authorization"].map((use) => `--${use}-kubeconfig=${kubeconfig}`),
      "--bind-address=127.0.0.1",
      `--secure-port=${secure}`,
      `--metrics-service-address=localhost:${metrics}`,
      `--cert-dir=${certificates}`,
      `--tls-cert-file=${certificates}/tls.crt`,
      `--tls-private-key-file=${certificates}/tls.key`,
      // its own metrics, on any port
      "--port=0"
    ],
    env,
    ready: client.get("/apis/external.metrics.k8s.io/v1beta1"),
    within: "60 seconds"
  })
})

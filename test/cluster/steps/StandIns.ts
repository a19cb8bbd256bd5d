/** What the guide expects in a cluster and no package registry has: NATS's chart, and cert-manager with its issuer. */
import { Effect, FileSystem, Schedule } from "effect"
import { join } from "node:path"
import { writeCertificates } from "../../fixture/nats/Certificates.ts"
import { create, patchCustom, read } from "../control-plane/Api.ts"

const labels = { "app.kubernetes.io/name": "nats" }

/** The chart's objects that matter here: the servers, each on a node of its own, one of which may be evicted at a time. */
export const natsChart = (replicas: number) => ({
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "nats-headless", namespace: "nats" },
      spec: { clusterIP: "None", selector: labels, ports: [{ name: "nats", port: 4222 }] }
    },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "nats", namespace: "nats" },
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } }
    },
    {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "nats", namespace: "nats" },
      spec: {
        replicas,
        serviceName: "nats-headless",
        podManagementPolicy: "Parallel",
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 60,
            containers: [{
              name: "nats",
              image: "nats",
              volumeMounts: [
                { name: "accounts", mountPath: "/etc/nats-accounts" },
                ...replicas > 1 ? [{ name: "tls", mountPath: "/etc/nats-certs" }] : []
              ]
            }],
            volumes: [
              { name: "accounts", configMap: { name: "nats-accounts" } },
              ...replicas > 1 ? [{ name: "tls", secret: { secretName: "nats-tls" } }] : []
            ]
          }
        }
      }
    }
  ]
})

/** Issues the certificate of NATS once the guide asks for it, for addresses of this machine. */
export const startIssuer = Effect.fn("startIssuer")(function*(addresses: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "issuer-" })
  writeCertificates(folder, addresses)
  const base64 = (file: string) =>
    Effect.map(fs.readFile(join(folder, file)), (bytes) => Buffer.from(bytes).toString("base64"))
  const data = {
    "ca.crt": yield* base64("ca.pem"),
    "tls.crt": yield* base64("server.pem"),
    "tls.key": yield* base64("server.key")
  }
  const certificate = "/apis/cert-manager.io/v1/namespaces/nats/certificates/nats"
  yield* read(certificate).pipe(
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.andThen(create("/api/v1/namespaces/nats/secrets", {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name: "nats-tls" },
      data
    })),
    Effect.andThen(patchCustom(`${certificate}/status`, {
      status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] }
    })),
    Effect.forkScoped
  )
})

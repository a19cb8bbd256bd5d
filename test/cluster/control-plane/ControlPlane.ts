/** A real control plane on this machine alone: etcd and kube-apiserver, with certificates and a token of their own. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Context, Effect, FileSystem, Layer } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { generateKeyPairSync } from "node:crypto"
import { join } from "node:path"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { writeCertificates } from "../../fixture/nats/Certificates.ts"
import * as Programs from "../programs/Programs.ts"
import { type Access, kubeconfig, newToken } from "./Access.ts"
import { start } from "./Server.ts"

const port = Effect.promise(freePort)

/** Starts etcd; returns its URL. */
const startEtcd = Effect.fn("startEtcd")(function*(program: string, folder: string) {
  const url = `http://127.0.0.1:${yield* port}`
  const peers = `http://127.0.0.1:${yield* port}`
  yield* start({
    name: "etcd",
    program,
    words: [
      ...["--data-dir", join(folder, "etcd"), "--log-level", "warn", "--unsafe-no-fsync"],
      ...["--listen-client-urls", url, "--advertise-client-urls", url],
      ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", `default=${peers}`]
    ],
    ready: Effect.flatMap(HttpClient.HttpClient, (client) => HttpClient.filterStatusOk(client).get(`${url}/health`)),
    within: "30 seconds"
  })
  return url
})

/** Writes the pair of keys that signs the tokens of service accounts. */
const writeKeys = Effect.fn("writeKeys")(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" }
  })
  yield* fs.writeFileString(join(folder, "accounts.key"), privateKey)
  yield* fs.writeFileString(join(folder, "accounts.pub"), publicKey)
})

/** An HTTP client for the API: it trusts its authority and sends the token. */
const clientFor = Effect.fn("clientFor")(function*({ authority, token, url }: Access) {
  const fs = yield* FileSystem.FileSystem
  const ca = yield* fs.readFileString(authority)
  // fresh: the client without this authority has been built from the same layer
  const context = yield* Layer.build(Layer.fresh(NodeHttpClient.layerUndiciOptions({ connect: { ca } })))
  return Context.get(context, HttpClient.HttpClient).pipe(
    HttpClient.mapRequest((request) =>
      request.pipe(HttpClientRequest.prependUrl(url), HttpClientRequest.bearerToken(token))
    ),
    HttpClient.filterStatusOk
  )
})

/** The running control plane, and how to reach it. */
export class ControlPlane extends Context.Service<ControlPlane, {
  readonly access: Access
  /** Its files, deleted at its end. */
  readonly folder: string
  /** The file that tells kubectl and controllers where it is. */
  readonly kubeconfig: string
  /** Sends requests to paths such as `/api/v1/pods`. Fails if the answer is an error. */
  readonly client: HttpClient.HttpClient
}>()("test/cluster/control-plane/ControlPlane") {
  static readonly layer = Layer.effect(
    ControlPlane,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const program = yield* Programs.find(["etcd", "kube-apiserver"])
      const folder = yield* fs.makeTempDirectoryScoped({ prefix: "cluster-" })
      writeCertificates(folder)
      yield* writeKeys(folder)
      const etcd = yield* startEtcd(program("etcd"), folder)
      const securePort = yield* port
      const access = { url: `https://127.0.0.1:${securePort}`, authority: join(folder, "ca.pem"), token: newToken() }
      yield* fs.writeFileString(join(folder, "tokens.csv"), `${access.token},admin,admin,system:masters\n`)
      yield* fs.writeFileString(join(folder, "kubeconfig"), kubeconfig(access))
      const client = yield* clientFor(access)
      yield* start({
        name: "kube-apiserver",
        program: program("kube-apiserver"),
        words: [
          `--etcd-servers=${etcd}`,
          "--bind-address=127.0.0.1",
          `--secure-port=${securePort}`,
          `--tls-cert-file=${join(folder, "server.pem")}`,
          `--tls-private-key-file=${join(folder, "server.key")}`,
          `--token-auth-file=${join(folder, "tokens.csv")}`,
          "--authorization-mode=RBAC",
          "--service-account-issuer=https://kubernetes.default.svc",
          `--service-account-key-file=${join(folder, "accounts.pub")}`,
          `--service-account-signing-key-file=${join(folder, "accounts.key")}`,
          "--service-cluster-ip-range=10.0.0.0/24",
          // how it shows servers of more APIs, such as KEDA's adapter, whom it serves
          `--requestheader-client-ca-file=${access.authority}`,
          `--proxy-client-cert-file=${join(folder, "server.pem")}`,
          `--proxy-client-key-file=${join(folder, "server.key")}`,
          "--requestheader-username-headers=X-Remote-User",
          "--requestheader-group-headers=X-Remote-Group",
          "--requestheader-extra-headers-prefix=X-Remote-Extra-",
          // a loopback address may be no endpoint
          "--endpoint-reconciler-type=none"
        ],
        ready: client.get("/readyz"),
        within: "90 seconds"
      })
      return { access, folder, kubeconfig: join(folder, "kubeconfig"), client }
    })
  )
}

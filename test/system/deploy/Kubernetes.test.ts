/** The cluster's manifests conform to their schemas and to the project's rules. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parse } from "yaml"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import * as Models from "../../../shared/catalogue/Models.ts"
import { workloads } from "../../../shared/contract/Operation.ts"
import { jobStream, queuesOf, versionsOf } from "../../../shared/bus/protocol/Subjects.ts"
import {
  type Document,
  missing,
  project,
  render,
  renderFolder,
  renderWith,
  unknownFields,
  wrongValues
} from "../../fixture/deploy/Manifests.ts"
import { adminHere } from "../../fixture/admin/AdminHere.ts"
import * as Pods from "../../fixture/deploy/Pods.ts"
import { defaultSlots, taskSlotsBeside } from "../../../shared/worker/WorkerSettings.ts"

const services = readdirSync(join(project, "services")).filter((name) => name !== "admin")

/** The source of everything that runs in a pod, to search for the variables it reads. */
const sources = ["shared", "services"].flatMap((folder) =>
  readdirSync(join(project, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(join(project, folder, file), "utf8"))
).join("\n")

const stage = missing === undefined ? describe : describe.skip
if (missing !== undefined) console.warn(`skipped the tests of the manifests: ${missing}`)

/** The base with an optional component. */
const withComponent = missing === undefined ? renderWith("ingress-controller") : []

/** Spelling mistakes in the documents of production. */
const misspellings = [
  ["probe", "readinessProbe", "readynessProbe"],
  ["field of KEDA", "pollingInterval", "poolingInterval"],
  ["field of a pod monitor", "podMetricsEndpoints", "podMetricEndpoints"],
  ["field of a route", "backendRequest", "backendRequests"]
] as const

/** Production's documents with a changed text. */
const broken = (change: (text: string) => string): ReadonlyArray<Document> =>
  JSON.parse(change(JSON.stringify(render("overlays/production"))))

let found: ReturnType<typeof compile> | undefined
const compile = () =>
  unknownFields({
    "overlays/minimal": render("overlays/minimal"),
    "overlays/production": render("overlays/production"),
    component: withComponent,
    misspelt: broken((text) =>
      misspellings.reduce((text, [, from, to]) => text.replaceAll(`"${from}":`, `"${to}":`), text)
    )
  })
/** The unknown fields in all documents, by one run of the compiler, which takes seconds. */
const unknown = () => found ??= compile()

stage.each(["overlays/minimal", "overlays/production"] as const)("%s", (overlay) => {
  const documents = missing === undefined ? render(overlay) : []
  const ofKind = <A extends Document>(kind: string) =>
    documents.filter((document): document is A => document.kind === kind)
  const named = <A extends Document>(kind: string, name: string): A | undefined =>
    ofKind<A>(kind).find(({ metadata }) => metadata.name === name)
  const pods = Pods.podsOf(documents)

  it("has values of the right types", async () => {
    assert.deepStrictEqual(await wrongValues(documents), [])
  })

  it("has no unknown field", () => {
    assert.deepStrictEqual(unknown()[overlay], [])
  })

  it("has a Deployment for each service, named after its folder", () => {
    assert.deepStrictEqual(ofKind("Deployment").map(({ metadata }) => metadata.name).toSorted(), services.toSorted())
    for (const { name, container } of pods) {
      const [service = ""] = container.args
      if (name !== "provision") assert.strictEqual(service, name)
      assert.isTrue(existsSync(join(project, "services", service, "main.ts")), service)
    }
  })

  it.each(workloads)("scales, protects and isolates the workers of %s", (workload) => {
    const scaled = named<Pods.ScaledObject>("ScaledObject", workload)
    const triggers = (scaled?.spec.triggers ?? []).filter(({ type }) => type === "nats-jetstream")
    assert.strictEqual(scaled?.spec.scaleTargetRef.name, workload)
    assert.sameMembers(
      [...new Set(triggers.map(({ metadata }) => metadata["stream"]))],
      queuesOf(workload).flatMap((queue) => versionsOf(queue).map((version) => jobStream(queue, version)))
    )
    const slots = Number(pods.find(({ name }) => name === workload)?.environment.get("WORKER_SLOTS"))
    assert.strictEqual(slots, defaultSlots[workload])
    for (const { metadata } of triggers) {
      assert.strictEqual(metadata["account"], "GATEWAY")
      // three quarters, as under Sizing: a pod starts before the others are full
      const most = metadata["stream"]?.endsWith("-TASKS") === true ? taskSlotsBeside(slots) : slots
      assert.strictEqual(Number(metadata["lagThreshold"]), Math.ceil(0.75 * most), metadata["stream"])
    }
    // a pod whose event loop is full has slots to spare
    const cpu = (scaled?.spec.triggers ?? []).filter(({ type }) => type === "cpu")
    assert.deepStrictEqual(cpu.map(({ metricType }) => metricType), ["AverageValue"])
    assert.strictEqual(scaled?.spec.fallback.behavior, "currentReplicasIfHigher")
    const disruptions = named<Pods.Selecting>("PodDisruptionBudget", workload)
    assert.deepInclude(disruptions?.spec.selector?.matchLabels, { "app.kubernetes.io/component": workload })
    const policy = named<Pods.NetworkPolicy>("NetworkPolicy", workload)
    assert.deepInclude(policy?.spec.podSelector.matchLabels, { "app.kubernetes.io/component": workload })
    assert.deepStrictEqual(policy?.spec.policyTypes, ["Ingress", "Egress"])
    // not an empty list: the API server drops it, so that each apply would be a change
    assert.isUndefined(policy?.spec.ingress)
    assert.isDefined(named("ServiceAccount", workload))
  })

  it("lets machines be drained while NATS is away and no pod is ready", () => {
    const budgets = ofKind<Document & { readonly spec: { readonly unhealthyPodEvictionPolicy?: string } }>(
      "PodDisruptionBudget"
    )
    assert.lengthOf(budgets, services.length)
    for (const { metadata, spec } of budgets) {
      assert.strictEqual(spec.unhealthyPodEvictionPolicy, "AlwaysAllow", metadata.name)
    }
  })

  it("applies what the provisioning job refers to before it, and the scaling after it", () => {
    const waveOf = (document: Document | undefined) =>
      Number(document?.metadata.annotations?.["argocd.argoproj.io/sync-wave"] ?? 0)
    const job = named("Job", "provision")
    const references = [named("ServiceAccount", "provision"), ...ofKind("Namespace"), ...ofKind("ConfigMap")]
    assert.isAtLeast(references.length, 5)
    for (const reference of references) assert.isBelow(waveOf(reference), waveOf(job), reference?.metadata.name)
    for (const scaled of ofKind("ScaledObject")) assert.isAbove(waveOf(scaled), waveOf(job), scaled.metadata.name)
  })

  it("has selectors that match only their own service's pods", () => {
    for (const kind of ["Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service"]) {
      for (const { metadata, spec } of ofKind<Pods.Selecting>(kind)) {
        if (["default-deny", "common", "scrape"].includes(metadata.name)) continue
        const selector = kind === "Service" ? spec.selector : (spec.podSelector ?? spec.selector)?.matchLabels
        const selected = pods.filter(({ labels }) =>
          Object.entries(selector ?? {}).every(([label, value]) => labels[label] === value)
        )
        assert.deepStrictEqual(selected.map(({ name }) => name), [metadata.name], `${kind} ${metadata.name}`)
      }
    }
  })

  it("denies traffic by default, and lets clients reach only ingress", () => {
    const denied = named<Pods.NetworkPolicy>("NetworkPolicy", "default-deny")
    assert.deepStrictEqual(denied?.spec, { podSelector: {}, policyTypes: ["Ingress", "Egress"] })
    const open = ofKind<Pods.NetworkPolicy>("NetworkPolicy")
      .filter(({ spec }) => spec.ingress?.some(({ from }) => from === undefined))
    assert.deepStrictEqual(open.map(({ metadata }) => metadata.name), ["ingress"])
  })

  it("lets ingress reach only NATS and the collector, and workers providers but no private network", () => {
    const ways = new Map(
      ofKind<Pods.NetworkPolicy>("NetworkPolicy").map(({ metadata, spec }) => [
        metadata.name,
        spec.egress ?? []
      ])
    )
    assert.deepStrictEqual(ways.get("ingress"), [])
    for (const workload of workloads) {
      const [way] = ways.get(workload) ?? []
      const v4 = way?.to?.find(({ ipBlock }) => ipBlock?.cidr === "0.0.0.0/0")?.ipBlock?.except ?? []
      assert.includeMembers([...v4], ["10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"])
    }
  })

  it("runs every container restricted, with limits, on a read-only root", () => {
    assert.isAbove(pods.length, services.length)
    for (const { container, name, spec } of pods) {
      assert.deepInclude(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } }, name)
      assert.deepStrictEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
        readOnlyRootFilesystem: true
      }, name)
      assert.isFalse(spec.automountServiceAccountToken, name)
      assert.strictEqual(spec.containers.length, 1, name)
      for (const bound of [container.resources.limits, container.resources.requests]) {
        assert.hasAllKeys(bound, ["cpu", "memory"], name)
      }
      assert.notMatch(container.image, /:latest$/)
    }
  })

  it("checks that each service is alive without NATS, and ready with it", () => {
    for (const { container, environment, name } of pods.filter(({ name }) => name !== "provision")) {
      assert.strictEqual(container.livenessProbe?.httpGet.path, "/healthz", name)
      assert.strictEqual(container.startupProbe?.httpGet.path, "/healthz", name)
      assert.strictEqual(container.readinessProbe?.httpGet.path, "/readyz", name)
      const [port] = container.ports?.filter(({ name }) => name === "health") ?? []
      assert.strictEqual(String(port?.containerPort), environment.get("HEALTH_PORT"), name)
      for (const probe of [container.livenessProbe, container.startupProbe, container.readinessProbe]) {
        assert.strictEqual(probe?.httpGet.port, "health", name)
      }
    }
  })

  it("leads clients to no health or metrics port", () => {
    for (const { metadata, spec } of ofKind<Pods.Selecting>("Service")) {
      assert.deepStrictEqual(spec.ports?.map(({ targetPort }) => targetPort), ["http"], metadata.name)
    }
    const open = ofKind<Pods.NetworkPolicy>("NetworkPolicy").flatMap(({ spec }) => spec.ingress ?? [])
    for (const { from, ports } of open) {
      assert.deepStrictEqual(ports?.map(({ port }) => port), [from === undefined ? 8080 : 8081])
    }
    for (const { spec } of ofKind<Pods.PodMonitor>("PodMonitor")) {
      assert.deepStrictEqual(spec.podMetricsEndpoints.map(({ port }) => port), ["health"])
    }
  })

  it("gives every pod the time that its drain takes", () => {
    for (const { environment, name, spec } of pods.filter(({ name }) => name !== "provision" && name !== "console")) {
      const needed = ["DRAIN_DELAY_MS", "GRACE_MS", "WORKER_GRACE_MS"]
        .reduce((sum, variable) => sum + Number(environment.get(variable) ?? 0), 0)
      assert.isAbove(needed, 0, name)
      assert.isAtLeast((spec.terminationGracePeriodSeconds ?? 0) * 1_000, needed + 10_000, name)
    }
  })

  it("sets no variable that neither the code nor the image reads", () => {
    const image = readFileSync(join(project, "deploy/Dockerfile"), "utf8")
    for (const { environment, name } of pods) {
      for (const variable of environment.keys()) {
        // effect reads those of OpenTelemetry
        if (variable.startsWith("OTEL_")) continue
        assert.isTrue(
          sources.includes(`"${variable}"`) || image.includes(`$${variable} `),
          `${name}: ${variable}`
        )
      }
    }
  })

  it("gives each pod only its own secrets, and none in a ConfigMap", () => {
    for (const { name, secrets } of pods) {
      const own = name === "provision" ? "nats-admin" : `nats-${name}`
      const allowed = [
        own,
        "gateway-secret",
        ...name === "console" ? ["console-admin-token"] : [],
        ...workloads.some((one) => one === name) ? [`providers-${name}`] : []
      ]
      assert.include(secrets, own)
      assert.strictEqual(secrets.includes("gateway-secret"), !["video", "provision"].includes(name), name)
      assert.deepStrictEqual(secrets.filter((secret) => !allowed.includes(secret)), [], name)
    }
    for (const { data, metadata } of ofKind<Pods.ConfigMap>("ConfigMap")) {
      for (const [key, value] of Object.entries(data)) {
        assert.notMatch(key, /seed|password|secret|token|key/i, metadata.name)
        assert.notMatch(value, /\bS[UAO][A-Z2-7]{56}\b|\bsk-[\w-]{20}/, metadata.name)
      }
    }
  })

  it("has a catalogue that the services accept, which names keys and contains none", async () => {
    const data = named<Pods.ConfigMap>("ConfigMap", "catalogue")?.data ?? {}
    const { providers } = await Effect.runPromise(Catalogue.parse("gateway.yaml", data["gateway.yaml"] ?? ""))
    for (const { apiKey } of providers.values()) if (apiKey !== undefined) assert.match(apiKey, /^\$\{\w+\}$/)
  })

  it("gives ingress and batches only the models of that catalogue, and nothing about providers", async () => {
    const text = (name: string) => Object.values(named<Pods.ConfigMap>("ConfigMap", name)?.data ?? {})[0] ?? ""
    const models = await Effect.runPromise(Models.parse("models.yaml", text("models")))
    assert.deepStrictEqual(models, await Effect.runPromise(Models.parse("gateway.yaml", text("catalogue"))))
    assert.isAbove(models.models.size, 0)
    assert.notMatch(text("models"), /provider|apiKey|baseUrl|https?:/)
    for (const { configMaps, environment, name, secrets } of pods) {
      const isPart = ["ingress", "batches", "provision"].includes(name)
      assert.strictEqual(configMaps.includes("catalogue"), !isPart, name)
      assert.strictEqual(configMaps.includes("models"), isPart, name)
      const file = isPart ? "/etc/gateway/models.yaml" : "/etc/gateway/gateway.yaml"
      assert.strictEqual(environment.get("GATEWAY_CONFIG"), file, name)
      if (isPart || name === "console") assert.isEmpty(secrets.filter((one) => one.startsWith("providers-")), name)
    }
  })

  it("names ConfigMaps that exist", () => {
    const names = ofKind("ConfigMap").map(({ metadata }) => metadata.name)
    for (const { configMaps, name } of pods) {
      // the authority of NATS's certificate is created with it, outside these manifests
      const wanted = configMaps.filter((one) => one !== "nats-ca")
      assert.includeMembers(names, wanted, name)
    }
  })
})

stage("the overlays", () => {
  const minimumOf = (overlay: string, name: string) => {
    const scaled = render(overlay).find(({ kind, metadata }) => kind === "ScaledObject" && metadata.name === name)
    return (scaled as Pods.ScaledObject | undefined)?.spec.minReplicaCount
  }
  it("minimal scales pictures and videos to zero", () => {
    assert.deepStrictEqual(["images", "video", "chat"].map((name) => minimumOf("overlays/minimal", name)), [0, 0, 1])
  })
  it("minimal deploys every image of this version by its tag", () => {
    const { version } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { readonly version: string }
    for (const { container, name } of Pods.podsOf(render("overlays/minimal"))) {
      assert.match(container.image, new RegExp(`^registry\\.example\\.com/model-gateway(-media)?:${version}$`), name)
    }
  })
  it("production keeps two workers of interactive workloads, and three copies of everything", () => {
    assert.strictEqual(minimumOf("overlays/production", "chat"), 2)
    for (const { environment } of Pods.podsOf(render("overlays/production"))) {
      assert.strictEqual(environment.get("NATS_REPLICAS"), "3")
      assert.strictEqual(environment.get("NATS_CA"), "/etc/nats-ca/ca.crt")
    }
  })
  it("production deploys every image by digest", () => {
    const pods = Pods.podsOf(render("overlays/production"))
    assert.isAbove(pods.length, services.length)
    for (const { container, name } of pods) {
      assert.match(container.image, /^registry\.example\.com\/model-gateway(-media)?@sha256:[0-9a-f]{64}$/, name)
    }
  })
  it("production has a NATS certificate that is valid for the guide's forwarded port", () => {
    const [, host] = /NATS_URL=nats:\/\/([\w.-]+):4222 NATS_CA=/.exec(
      readFileSync(join(project, "deploy/README.md"), "utf8")
    ) ?? []
    const certificate = readFileSync(join(project, "deploy/kubernetes/components/nats-tls/certificate.yaml"), "utf8")
    assert.include(parse(certificate).spec.dnsNames, host)
  })
  it("their optional components conform to the schemas", async () => {
    assert.isTrue(withComponent.some(({ kind }) => kind === "Ingress"))
    assert.deepStrictEqual([...await wrongValues(withComponent), ...unknown().component], [])
  })
})

describe("the values of NATS's chart", () => {
  it.each(["values.yaml", "values-minimal.yaml"])("%s pins the server by version and digest", (file) => {
    const { image } = parse(readFileSync(join(project, "deploy/nats", file), "utf8")).container
    assert.match(
      `${image.repository}:${image.tag}`,
      /^docker\.io\/library\/nats:\d+\.\d+\.\d+-alpine@sha256:[0-9a-f]{64}$/
    )
  })
})

it("the chart's values let KEDA find every server, and leave a part of the volume free", () => {
  const { cluster, jetstream } = parse(readFileSync(join(project, "deploy/nats/values.yaml"), "utf8")).config
  assert.strictEqual(cluster.noAdvertise, false)
  const { maxSize, pvc } = jetstream.fileStore
  assert.isAtMost(Number.parseInt(maxSize), 0.9 * Number.parseInt(pvc.size))
})

stage("the schema checks", () => {
  it.each(misspellings)("find a misspelt %s", (_, from, to) => {
    assert.include(JSON.stringify(render("overlays/production")), `"${from}":`)
    assert.isAbove(unknown().misspelt.filter((error) => error.includes(to)).length, 0)
  })
  it.each([
    ["text for a number", "\"minReadySeconds\":5", "\"minReadySeconds\":\"5\""],
    ["a number for text, in KEDA's metadata", "\"stream\":\"JOBS3_CHAT\"", "\"stream\":5"]
  ])("find %s", async (_, from, to) => {
    const documents = broken((text) => text.replace(from, to))
    assert.strictEqual((await wrongValues(documents)).length, 1)
  })
})

stage("an additional pool in a folder of its own", () => {
  it("has its own pods, with the settings of its workload's", () => {
    const place = mkdtempSync(join(tmpdir(), "pool-"))
    try {
      cpSync(join(project, "deploy/kubernetes"), place, { recursive: true })
      cpSync(join(place, "base/chat"), join(place, "base/chat-slow"), { recursive: true })
      const edit = (file: string, from: string, to: string) => {
        const text = readFileSync(join(place, file), "utf8")
        assert.include(text, from)
        writeFileSync(join(place, file), text.replace(from, to))
      }
      edit("base/chat-slow/measure.yaml", "name: chat\n", "name: chat-slow\n")
      edit("base/chat-slow/measure.yaml", "pool: default\n", "pool: slow\n")
      edit("base/kustomization.yaml", "  - chat\n", "  - chat\n  - chat-slow\n")
      const documents = renderFolder(join(place, "overlays/minimal"))
      const pods = Pods.podsOf(documents)
      const [chat, slow] = ["chat", "chat-slow"].map((name) => pods.find((pod) => pod.name === name))
      assert.strictEqual(chat?.environment.get("WORKER_POOL"), "default")
      assert.deepStrictEqual([...slow?.environment ?? []], [...new Map(chat?.environment).set("WORKER_POOL", "slow")])
      assert.deepStrictEqual(slow?.container.args, ["chat"])
      assert.deepStrictEqual(slow?.secrets, chat?.secrets)
      assert.deepInclude(slow?.labels, { "app.kubernetes.io/component": "chat-slow" })
      for (const kind of ["PodDisruptionBudget", "NetworkPolicy", "ServiceAccount"]) {
        assert.lengthOf(documents.filter((one) => one.kind === kind && one.metadata.name === "chat-slow"), 1)
      }
      const scaled = documents.find((one): one is Pods.ScaledObject =>
        one.kind === "ScaledObject" && one.metadata.name === "chat-slow"
      )
      assert.strictEqual(scaled?.spec.scaleTargetRef.name, "chat-slow")
      assert.deepInclude(scaled?.spec.triggers[0]?.metadata, { stream: "JOBS3_CHAT", consumer: "slow" })
      assert.deepInclude(scaled?.spec.triggers[1]?.metadata, { stream: "JOBS_CHAT", consumer: "slow" })
    } finally {
      rmSync(place, { recursive: true })
    }
  })
})

it("the values for NATS's chart mount the files they include, and agree with nats.conf", () => {
  for (const file of ["values.yaml", "values-minimal.yaml"]) {
    const values = parse(readFileSync(join(project, "deploy/nats", file), "utf8")) as {
      readonly config: { readonly merge: Readonly<Record<string, string>> }
      readonly container: { readonly patch: ReadonlyArray<{ readonly value: { readonly mountPath: string } }> }
      readonly podTemplate: { readonly patch: ReadonlyArray<{ readonly value: { readonly configMap: object } }> }
    }
    assert.strictEqual(values.config.merge["zz$include"], "../nats-accounts/accounts.conf")
    assert.strictEqual(values.container.patch[0]?.value.mountPath, "/etc/nats-accounts")
    assert.deepStrictEqual(values.podTemplate.patch[0]?.value.configMap, { name: "nats-accounts" })
    const conf = readFileSync(join(project, "deploy/nats/nats.conf"), "utf8")
    for (const [name, value] of Object.entries(values.config.merge)) {
      if (name.endsWith("$include")) continue
      const said = new RegExp(`^${name}: "?([^"\\n]+)"?$`, "m").exec(conf)?.[1]
      assert.strictEqual(String(value).replace(/^<< | >>$/g, ""), said, name)
    }
  }
})

it("the admin's key command makes what the manifests refer to", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nats-keys-"))
  try {
    const keys = (...flags: ReadonlyArray<string>) => adminHere(["nats", "keys", folder, ...flags])
    await keys()
    const made = missing === undefined ? renderFolder(folder) : []
    const referred = missing === undefined
      ? Pods.podsOf(render("overlays/production")).flatMap(({ secrets }) => secrets)
      : []
    assert.includeMembers(
      made.filter(({ kind }) => kind === "Secret").map(({ metadata }) => metadata.name),
      referred.filter((name) => name.startsWith("nats-"))
    )
    const keysOf = (secret: string) => {
      const found = made.find(({ kind, metadata }) => kind === "Secret" && metadata.name === secret)
      return Object.keys((found as { readonly data?: object } | undefined)?.data ?? {})
    }
    const pods = missing === undefined ? Pods.podsOf(render("overlays/production")) : []
    for (const { container } of pods) {
      for (const { valueFrom } of container.env ?? []) {
        const { key = "", name = "" } = valueFrom?.secretKeyRef ?? {}
        if (name.startsWith("nats-")) assert.include(keysOf(name), key, name)
      }
    }
    const seeds = () => readdirSync(folder).filter((file) => file.endsWith(".nk"))
    for (const file of seeds()) assert.strictEqual(statSync(join(folder, file)).mode & 0o777, 0o600)

    const users = () => readFileSync(join(folder, "accounts.conf"), "utf8").match(/nkey: U\w{55}/g) ?? []
    const first = users()
    await keys("--rotate")
    assert.includeMembers([...users()], [...first])
    assert.strictEqual(users().length, 2 * first.length)
    // the first keys are in use until they are retired, however often keys are rotated
    const both = [...users()]
    await keys("--rotate")
    assert.deepStrictEqual([...users()], both)
    await keys("--retire")
    assert.strictEqual(users().length, first.length)
    assert.notIncludeMembers([...users()], [...first])
    assert.strictEqual(seeds().length, first.length)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it("seeds of the version with one account work until they are retired, but cannot change keys", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nats-keys-"))
  try {
    const run = async (...flags: ReadonlyArray<string>) => {
      await adminHere(["nats", "keys", folder, ...flags])
      const text = readFileSync(join(folder, "accounts.conf"), "utf8")
      const [data = "", control = ""] = text.slice(text.indexOf("  GATEWAY {")).split("  GATEWAY_CONTROL {")
      return { data, control }
    }
    const reads = "$JS.API.CONSUMER.CREATE.KV_API_KEYS"
    const writes = "$KV.API_KEYS."
    const fresh = await run()
    assert.notInclude(fresh.data, reads)
    assert.include(fresh.control, reads)
    for (const file of readdirSync(folder)) if (file.endsWith("-control.nk")) rmSync(join(folder, file))
    const seeds = readdirSync(folder).filter((file) => file.endsWith(".nk"))
    assert.isAbove(seeds.length, 0)
    // retiring twice is harmless
    for (const { control, data } of [await run(), await run()]) {
      assert.include(data, reads)
      assert.notInclude(data, writes)
      assert.include(control, writes)
    }
    const retired = await run("--retire")
    assert.notInclude(retired.data, reads)
    assert.strictEqual(retired.data, fresh.data)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

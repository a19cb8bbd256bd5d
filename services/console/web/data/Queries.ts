/** Queries and mutations of the admin API. */
import { notifications } from "@mantine/notifications"
import {
  keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  type QueryKey,
  useMutation,
  useQuery,
  type UseQueryOptions
} from "@tanstack/react-query"
import type { Effect } from "effect"
import { useMemo } from "react"
import type { KeyChanges, KeySettings } from "../../../../shared/keys/KeySettings.ts"
import type { TeamChanges, TeamSettings } from "../../../../shared/teams/TeamSettings.ts"
import type { UsageQuery } from "../../../../shared/usage/UsageTable.ts"
import { extentOf, type rights } from "../../api/Rights.ts"
import type { TaskQuery } from "../../api/Tasks.ts"
import { call, client, isNotSignedIn, isNoWebhook, isTracedElsewhere, messageOf } from "./Client.ts"

/** Shows the sign-in page when the session has expired. */
const onError = (error: unknown) => {
  if (isNotSignedIn(error)) queries.setQueryData(["session"], null)
}

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({
    onError: (error) => {
      onError(error)
      notifications.show({ color: "red", title: "Request failed", message: messageOf(error) })
    }
  }),
  defaultOptions: {
    queries: { retry: (failures, error) => failures < 2 && !isNotSignedIn(error), staleTime: 5_000 }
  }
})

/** `null` without a session. */
export const useSession = () =>
  useQuery({
    queryKey: ["session"],
    queryFn: ({ signal }) =>
      call(client.session.current(), signal).catch((error: unknown) => {
        if (isNotSignedIn(error)) return null
        throw error
      }),
    staleTime: Number.POSITIVE_INFINITY
  })

/** Whether the person's role allows an endpoint, so that pages hide what the API would reject. */
export const useMay = () => {
  const { data } = useSession()
  return <Group extends keyof typeof rights>(group: Group, endpoint: keyof typeof rights[Group] & string): boolean =>
    data !== null && data !== undefined && extentOf(data.role, group, endpoint) !== "none"
}

/** Clears cached data, so that the next administrator does not see it. */
const forgetAll = () => queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" })

export const signIn = async (token: string, name: string): Promise<void> => {
  await call(client.session.signIn({ payload: name === "" ? { token } : { token, name } }))
  forgetAll()
  await queries.refetchQueries({ queryKey: ["session"] })
}

export const useSignInWays = () => useApi(["session", "ways"], client.session.ways())

export const useSignOut = () =>
  useMutation({
    mutationFn: () => call(client.session.signOut()),
    onSuccess: (ofProvider) => {
      queries.setQueryData(["session"], null)
      forgetAll()
      // the person's session at the OpenID provider ends, too
      if (ofProvider !== undefined) location.assign(ofProvider.providerUrl)
    }
  })

const useApi = <A, E>(
  queryKey: QueryKey,
  effect: Effect.Effect<A, E>,
  options: Omit<UseQueryOptions<A>, "queryKey" | "queryFn"> = {}
) => useQuery({ queryKey, queryFn: ({ signal }) => call(effect, signal), ...options })

export const useKeys = () => useApi(["keys"], client.keys.list(), { refetchInterval: 30_000 })

/** What to show for a key's id: the key's name, or for an owner of tokens the value of the claim and the issuer. */
export const useKeyNames = (): (id: string) => string => {
  const keys = useKeys()
  const isAllowed = useMay()("keys", "principals")
  const principals = useApi(["keys", "principals"], client.keys.principals(), {
    staleTime: 60_000,
    enabled: isAllowed
  })
  const names = useMemo(() =>
    new Map([
      ...(principals.data ?? []).map(({ id, issuer, subject }) => [id, `${subject} (${issuer})`] as const),
      ...(keys.data ?? []).map(({ id, name }) => [id, name] as const)
    ]), [keys.data, principals.data])
  return (id) => names.get(id) ?? id
}

export const useKeyChanges = () => useApi(["keys", "changes"], client.keys.changes())

export const useTeams = () => useApi(["teams"], client.teams.list(), { refetchInterval: 30_000 })

/** A mutation that refreshes every page that shows the changed data. The log of keys shows every change. */
const useChange = <Input, Output>(
  queryKey: "keys" | "tasks" | "teams",
  mutationFn: (input: Input) => Promise<Output>
) =>
  useMutation({
    mutationFn,
    onSuccess: () => Promise.all([queryKey, "keys"].map((key) => queries.invalidateQueries({ queryKey: [key] })))
  })

/** A mutation of keys. It refreshes the teams, too, which show how many keys they have. */
const useKeyMutation = <Input, Output>(mutationFn: (input: Input) => Promise<Output>) => useChange("teams", mutationFn)

export const useCreateKey = () =>
  useKeyMutation((settings: KeySettings) => call(client.keys.create({ payload: settings })))

export const useEditKey = () =>
  useKeyMutation(({ changes, id }: { readonly id: string; readonly changes: KeyChanges }) =>
    call(client.keys.edit({ params: { id }, payload: changes }))
  )

export const useRevokeKey = () => useKeyMutation((id: string) => call(client.keys.revoke({ params: { id } })))

export const useCreateTeam = () =>
  useChange("teams", (settings: TeamSettings) => call(client.teams.create({ payload: settings })))

export const useEditTeam = () =>
  useChange(
    "teams",
    ({ changes, id }: { readonly id: string; readonly changes: TeamChanges }) =>
      call(client.teams.edit({ params: { id }, payload: changes }))
  )

export const useDeleteTeam = () => useChange("teams", (id: string) => call(client.teams.remove({ params: { id } })))

/** `webhook` is `null` if the team has none. */
export const useTeamWebhook = (id: string) =>
  useQuery({
    queryKey: ["teams", id, "webhook"],
    queryFn: ({ signal }) =>
      call(client.teamWebhooks.get({ params: { id } }), signal).then(
        (webhook) => ({ webhook }),
        (error: unknown) => {
          if (isNoWebhook(error)) return { webhook: null }
          throw error
        }
      )
  })

export const useTeamDeliveries = (id: string) =>
  useApi(["teams", id, "deliveries"], client.teamWebhooks.deliveries({ params: { id } }), { refetchInterval: 5_000 })

export const useSetTeamWebhook = () =>
  useChange(
    "teams",
    ({ id, url }: { readonly id: string; readonly url: string }) =>
      call(client.teamWebhooks.set({ params: { id }, payload: { url } }))
  )

export const useRotateTeamWebhook = () =>
  useChange("teams", (id: string) => call(client.teamWebhooks.rotate({ params: { id } })))

export const useRemoveTeamWebhook = () =>
  useChange("teams", (id: string) => call(client.teamWebhooks.remove({ params: { id } })))

export const useResendToTeam = () =>
  useChange(
    "teams",
    (params: { readonly id: string; readonly delivery: string }) => call(client.teamWebhooks.resend({ params }))
  )

export const useUsage = (query: UsageQuery) =>
  useApi(["usage", query], client.usage.query({ query }), {
    refetchInterval: 15_000,
    placeholderData: keepPreviousData
  })

export const useRequests = (isLive: boolean) =>
  useApi(["requests"], client.usage.requests(), { refetchInterval: isLive ? 3_000 : false })

export const useTasks = (query: TaskQuery, isLive: boolean) =>
  useApi(["tasks", query], client.tasks.list({ query }), {
    refetchInterval: isLive ? 3_000 : false,
    placeholderData: keepPreviousData
  })

export const useCancelTask = () => useChange("tasks", (id: string) => call(client.tasks.cancel({ params: { id } })))

export const useDeleteTask = () => useChange("tasks", (id: string) => call(client.tasks.remove({ params: { id } })))

/** Polls, because spans arrive until some time after the request's end. */
export const useTrace = (id: string) =>
  useApi(["trace", id], client.traces.find({ params: { id } }), {
    refetchInterval: ({ state }) => isTracedElsewhere(state.error) ? false : 2_000,
    // "not found" is a valid result
    retry: false
  })

/** Disabled if the person's role does not allow it: other pages work without the catalogue. */
export const useCatalogue = () =>
  useApi(["catalogue"], client.fleet.catalogue(), { refetchInterval: 5_000, enabled: useMay()("fleet", "catalogue") })

export const useFleet = (isLive: boolean) =>
  useApi(["fleet"], client.fleet.live(), { refetchInterval: isLive ? 2_000 : false })

/** What the pages ask the admin API, and how often. */
import { notifications } from "@mantine/notifications"
import { MutationCache, QueryCache, QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import type { KeyChanges, KeySettings } from "../../../../shared/keys/KeySettings.ts"
import type { UsageQuery } from "../../../../shared/usage/UsageTable.ts"
import { call, client, isNotSignedIn, isTracedElsewhere, messageOf } from "./Client.ts"

/** A session may end while a page is open: the next answer says so, and the sign-in takes the page's place. */
const onError = (error: unknown) => {
  if (isNotSignedIn(error)) queries.setQueryData(["session"], null)
}

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({
    onError: (error) => {
      onError(error)
      notifications.show({ color: "red", title: "That did not work", message: messageOf(error) })
    }
  }),
  defaultOptions: {
    queries: { retry: (failures, error) => failures < 2 && !isNotSignedIn(error), staleTime: 5_000 }
  }
})

/** `null` where nobody is signed in. */
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

/** What one administrator has seen is nothing for the next. */
const forgetAll = () => queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" })

export const signIn = async (token: string, name: string): Promise<void> => {
  await call(client.session.signIn({ payload: name === "" ? { token } : { token, name } }))
  forgetAll()
  await queries.refetchQueries({ queryKey: ["session"] })
}

export const useSignOut = () =>
  useMutation({
    mutationFn: () => call(client.session.signOut()),
    onSuccess: () => {
      queries.setQueryData(["session"], null)
      forgetAll()
    }
  })

export const useKeys = () =>
  useQuery({ queryKey: ["keys"], queryFn: ({ signal }) => call(client.keys.list(), signal), refetchInterval: 30_000 })

export const useKeyChanges = () =>
  useQuery({ queryKey: ["keys", "changes"], queryFn: ({ signal }) => call(client.keys.changes(), signal) })

/** Changes keys, and lets every page see it. */
const useKeyMutation = <Input, Output>(mutationFn: (input: Input) => Promise<Output>) => {
  const queries = useQueryClient()
  return useMutation({ mutationFn, onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }) })
}

export const useCreateKey = () =>
  useKeyMutation((settings: KeySettings) => call(client.keys.create({ payload: settings })))

export const useEditKey = () =>
  useKeyMutation(({ changes, id }: { readonly id: string; readonly changes: KeyChanges }) =>
    call(client.keys.edit({ params: { id }, payload: changes }))
  )

export const useRevokeKey = () => useKeyMutation((id: string) => call(client.keys.revoke({ params: { id } })))

export const useUsage = (query: UsageQuery) =>
  useQuery({
    queryKey: ["usage", query],
    queryFn: ({ signal }) => call(client.usage.query({ query }), signal),
    refetchInterval: 15_000,
    placeholderData: (before) => before
  })

export const useRequests = (isLive: boolean) =>
  useQuery({
    queryKey: ["requests"],
    queryFn: ({ signal }) => call(client.usage.requests(), signal),
    refetchInterval: isLive ? 3_000 : false
  })

/** Spans come until some time after a request has ended. */
export const useTrace = (id: string) =>
  useQuery({
    queryKey: ["trace", id],
    queryFn: ({ signal }) => call(client.traces.find({ params: { id } }), signal),
    refetchInterval: ({ state }) => isTracedElsewhere(state.error) ? false : 2_000,
    // that there is none is an answer
    retry: false
  })

export const useCatalogue = () =>
  useQuery({
    queryKey: ["catalogue"],
    queryFn: ({ signal }) => call(client.fleet.catalogue(), signal),
    refetchInterval: 5_000
  })

export const useFleet = (isLive: boolean) =>
  useQuery({
    queryKey: ["fleet"],
    queryFn: ({ signal }) => call(client.fleet.live(), signal),
    refetchInterval: isLive ? 2_000 : false
  })

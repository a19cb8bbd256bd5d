/** The web app: its providers and routes. */
import { Center, Loader, MantineProvider } from "@mantine/core"
import { Notifications } from "@mantine/notifications"
import { QueryClientProvider } from "@tanstack/react-query"
import { lazy, Suspense } from "react"
import { Redirect, Route, Switch } from "wouter"
import { nonce } from "./Nonce.ts"
import { Fleet } from "./pages/Fleet.tsx"
import { Keys } from "./pages/Keys.tsx"
import { Models } from "./pages/Models.tsx"
import { Requests } from "./pages/Requests.tsx"
import { SignIn } from "./pages/SignIn.tsx"
import { Teams } from "./pages/Teams.tsx"
import { Tasks } from "./pages/Tasks.tsx"
import { Failure } from "./parts/Feedback.tsx"
import { Shell } from "./parts/Shell.tsx"
import { PlaygroundKeyProvider } from "./data/PlaygroundKey.tsx"
import { queries, useSession } from "./data/Queries.ts"
import { cssVariables, theme } from "./parts/Theme.ts"

const Usage = lazy(() => import("./pages/Usage.tsx"))
const Playground = lazy(() => import("./pages/Playground.tsx"))
const Reference = lazy(() => import("./pages/Reference.tsx"))

const waiting = (
  <Center mih="60vh">
    <Loader role="status" aria-label="Loading" />
  </Center>
)

const Pages = () => {
  const session = useSession()
  if (session.isPending) return waiting
  if (session.isError) return <Failure error={session.error} retry={session.refetch} />
  if (session.data === null) return <SignIn />
  return (
    <PlaygroundKeyProvider>
      <Shell admin={session.data}>
        <Suspense fallback={waiting}>
          <Switch>
            <Route path="/keys" component={Keys} />
            <Route path="/teams" component={Teams} />
            <Route path="/usage" component={Usage} />
            <Route path="/models" component={Models} />
            <Route path="/queues" component={Fleet} />
            <Route path="/requests" component={Requests} />
            <Route path="/tasks" component={Tasks} />
            <Route path="/playground">
              <Playground gatewayUrl={session.data.gatewayUrl} />
            </Route>
            <Route path="/api-reference" component={Reference} />
            <Route>
              <Redirect to="/keys" replace />
            </Route>
          </Switch>
        </Suspense>
      </Shell>
    </PlaygroundKeyProvider>
  )
}

export const App = () => (
  <MantineProvider
    theme={theme}
    cssVariablesResolver={cssVariables}
    defaultColorScheme="auto"
    getStyleNonce={() => nonce}
  >
    <Notifications position="bottom-right" />
    <QueryClientProvider client={queries}>
      <Pages />
    </QueryClientProvider>
  </MantineProvider>
)

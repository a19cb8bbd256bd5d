/** Sign-in with the OpenID provider, or with the admin token. */
import { Alert, Anchor, Box, Button, Divider, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core"
import { useForm } from "@mantine/form"
import { type ReactNode, useEffect, useState } from "react"
import { useLocation, useSearchParams } from "wouter"
import { isPage, problems, startPath } from "../../api/SignIn.ts"
import { messageOf } from "../data/Client.ts"
import { signIn, useSignInWays } from "../data/Queries.ts"
import { Brand } from "../parts/Brand.tsx"
import { Loaded } from "../parts/Feedback.tsx"

const Problem = ({ children }: { readonly children: ReactNode }) => <Alert color="red" role="alert">{children}</Alert>

const TokenForm = () => {
  const [error, setError] = useState<string>()
  const form = useForm({
    initialValues: { token: "", name: "" },
    validate: { token: (token) => token.trim() === "" ? "Enter the admin token" : null }
  })
  const submit = form.onSubmit(async ({ name, token }) => {
    setError(undefined)
    try {
      await signIn(token.trim(), name.trim())
    } catch (cause) {
      setError(messageOf(cause))
    }
  })
  return (
    <Stack gap="md">
      <Text c="dimmed" size="sm">
        <span className="mono">npm start</span> prints the admin token; other deployments set it as{" "}
        <span className="mono">CONSOLE_ADMIN_TOKEN</span>.
      </Text>
      {error === undefined ? null : <Problem>{error}</Problem>}
      <form onSubmit={submit}>
        <Stack gap="md">
          <PasswordInput
            label="Admin token"
            autoComplete="current-password"
            data-autofocus
            autoFocus
            {...form.getInputProps("token")}
          />
          <TextInput
            label="Your name"
            description="Optional: the audit log records your changes under this name"
            autoComplete="name"
            maxLength={80}
            {...form.getInputProps("name")}
          />
          <Button type="submit" size="md" loading={form.submitting} fullWidth>Sign in</Button>
        </Stack>
      </form>
    </Stack>
  )
}

/** The provider first. The token is for emergencies, so that its form appears on demand. */
const Ways = ({ adminToken, provider }: { readonly adminToken: boolean; readonly provider: string | null }) => {
  const [location] = useLocation()
  const [isTokenShown, showToken] = useState(false)
  if (provider === null) return <TokenForm />
  const to = isPage(location) && location !== "/sign-in" ? location : "/"
  return (
    <Stack gap="md">
      <Button component="a" href={`${startPath}?to=${encodeURIComponent(to)}`} size="md" fullWidth>
        Sign in with {provider}
      </Button>
      {adminToken && !isTokenShown
        ? <Anchor component="button" size="sm" onClick={() => showToken(true)}>Use the admin token</Anchor>
        : null}
      {isTokenShown ? <Divider /> : null}
      {isTokenShown ? <TokenForm /> : null}
    </Stack>
  )
}

export const SignIn = () => {
  const ways = useSignInWays()
  const [parameters] = useSearchParams()
  const problem = Object.entries(problems).find(([name]) => name === parameters.get("problem"))
  useEffect(() => {
    document.title = "Sign in · Model Gateway"
  }, [])
  return (
    <Box component="main" className="sign-in">
      <Paper className="card" p={{ base: "lg", xs: "xl" }} w="100%" maw={420} shadow="md">
        <Stack gap="lg">
          <Brand />
          <Title order={1} size="h3">Sign in to the console</Title>
          {problem === undefined ? null : <Problem>{problem[1]}</Problem>}
          <Loaded query={ways}>{(ways) => <Ways {...ways} />}</Loaded>
        </Stack>
      </Paper>
    </Box>
  )
}

/** Sign-in with the admin token. */
import { Alert, Box, Button, Paper, PasswordInput, Stack, Text, TextInput, Title } from "@mantine/core"
import { useForm } from "@mantine/form"
import { useEffect, useState } from "react"
import { messageOf } from "../data/Client.ts"
import { Brand } from "../parts/Brand.tsx"
import { signIn } from "../data/Queries.ts"

export const SignIn = () => {
  const [error, setError] = useState<string>()
  const form = useForm({
    initialValues: { token: "", name: "" },
    validate: { token: (token) => token.trim() === "" ? "Enter the admin token" : null }
  })
  useEffect(() => {
    document.title = "Sign in · Model Gateway"
  }, [])
  const submit = form.onSubmit(async ({ name, token }) => {
    setError(undefined)
    try {
      await signIn(token.trim(), name.trim())
    } catch (cause) {
      setError(messageOf(cause))
    }
  })
  return (
    <Box component="main" className="sign-in">
      <Paper className="card" p={{ base: "lg", xs: "xl" }} w="100%" maw={420} shadow="md">
        <Stack gap="lg">
          <Brand />
          <div>
            <Title order={1} size="h3">Sign in to the console</Title>
            <Text c="dimmed" size="sm" mt={4}>
              Use the admin token. <span className="mono">npm start</span> prints it; other deployments set it as{" "}
              <span className="mono">CONSOLE_ADMIN_TOKEN</span>.
            </Text>
          </div>
          {error === undefined ? null : <Alert color="red" role="alert">{error}</Alert>}
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
      </Paper>
    </Box>
  )
}

// Calls five operations by types that were generated from the OpenAPI document of the server.
import createClient from "openapi-fetch";
import type { paths } from "./schema";

const client = createClient<paths>({ baseUrl: process.env.SVC_URL });

function require<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) {
    throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  }
  return answer.data;
}

async function main(): Promise<void> {
  const health = require(await client.GET("/system/health"));
  const signedIn = require(
    await client.POST("/auth/token", { body: { api_key: process.env.SVC_API_KEY ?? "" } }),
  );
  const headers = { Authorization: `Bearer ${signedIn.token}` };
  const user = require(await client.POST("/system/users", { headers, body: { username: "typescript" } }));
  const users = require(
    await client.GET("/system/users", { headers, params: { query: { username: "typescript", limit: 1 } } }),
  );
  const shown = require(
    await client.GET("/system/users/{user_id}", { headers, params: { path: { user_id: user.user_id } } }),
  );
  const same: boolean = users.users[0].user_id === shown.user_id && shown.username === "typescript";
  if (!same || health.service !== "svc") {
    throw new Error("The answers are others.");
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

// Shows the operations of this server. An API key that was pasted is exchanged for an access token, which
// requests carry; both stay in the memory of this page.
"use strict";

const tokens = new Map();

async function tokenOf(key) {
  const known = tokens.get(key);
  if (known !== undefined && known.endsAt > Date.now()) return known.token;
  const answer = await fetch("../auth/token", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ api_key: key, refresh: false }),
  });
  if (!answer.ok) return key; // The answer to the request itself says what is wrong.
  const { token, expires_in: seconds } = await answer.json();
  tokens.set(key, { token, endsAt: Date.now() + (seconds - 10) * 1000 });
  return token;
}

async function signIn(request) {
  const given = request.headers?.Authorization;
  if (given === undefined) return request;
  const credential = given.replace(/^(Bearer\s+)+/i, "").trim();
  const token = credential.startsWith("svc_k_") ? await tokenOf(credential) : credential;
  request.headers.Authorization = `Bearer ${token}`;
  return request;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#operations",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  validatorUrl: null, // It would send the document to another host.
  requestInterceptor: signIn,
});

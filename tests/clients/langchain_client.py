"""What langchain-openai sees of /v1; prints one JSON object. Runs in an environment of its own."""

import json
import sys

from langchain_openai import ChatOpenAI

base, question = sys.argv[1:]
model = ChatOpenAI(
    base_url=f"{base}/v1", api_key="unused", model="cite", max_retries=0, extra_body={"index_name": "default"}
)
whole = model.invoke([("system", "Be brief."), ("user", question)])
pieces = [str(piece.content) for piece in model.stream([("user", question)])]
print(json.dumps({"whole": whole.content, "streamed": "".join(pieces), "pieces": len(pieces)}))  # noqa: T201

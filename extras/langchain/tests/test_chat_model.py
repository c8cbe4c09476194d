"""The standard suite of langchain-tests for chat models, over ChatOpenAI on /v1; against DATAFARI_RAG_URL."""

from __future__ import annotations

import os
from typing import Any

from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

URL = os.environ.get("DATAFARI_RAG_URL", "http://127.0.0.1:8080")


class TestChatCompletions(ChatModelIntegrationTests):
    """Chat completions with a model of the service, which answers from documents and calls no tools."""

    @property
    def chat_model_class(self) -> type[ChatOpenAI]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"base_url": f"{URL}/v1", "api_key": "unused", "model": "datafari", "max_retries": 0}

    has_tool_calling = False
    has_structured_output = False
    supports_json_mode = False
    returns_usage_metadata = False
    supports_image_inputs = False


class TestResponses(TestChatCompletions):
    """The same over responses."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "use_responses_api": True}

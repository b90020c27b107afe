package dev.nereid.distribution.parity;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.TensorText;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Runs scenarios over HTTP, on one connection. Bodies are handled as text of one character for each byte. */
final class HttpScenarios implements ScenarioClient {
    private static final int OK = 200;
    private static final String JSON_LENGTH = "inference-header-content-length";

    private final HttpConnection connection;
    private final boolean binary;

    /**
     * Creates a client.
     *
     * @param connection where; ended with this
     * @param binary whether tensors are sent as bytes
     */
    HttpScenarios(HttpConnection connection, boolean binary) {
        this.connection = connection;
        this.binary = binary;
    }

    @Override
    public Outcome run(Scenario scenario) throws IOException {
        byte[] json = bytes(json(scenario));
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(json);
        String version = scenario.request().version().isEmpty()
                ? ""
                : "/versions/" + scenario.request().version();
        String path = "/v2/models/" + scenario.request().model() + version + "/infer";
        if (!binary) {
            return outcome(connection.exchange(HttpRequests.post(path, body.toByteArray())));
        }
        scenario.request().inputs().forEach(input -> body.writeBytes(input.data()));
        return outcome(connection.exchange(
                HttpRequests.post(path, body.toByteArray(), "Inference-Header-Content-Length: " + json.length)));
    }

    @Override
    public void end() throws IOException {
        connection.close();
    }

    private String json(Scenario scenario) {
        List<String> members = new ArrayList<>();
        if (!scenario.request().id().isEmpty()) {
            members.add("\"id\":" + quoted(scenario.request().id()));
        }
        Map<String, Object> parameters = new TreeMap<>(scenario.request().parameters());
        if (binary && scenario.request().outputs().isEmpty()) {
            parameters.put("binary_data_output", true);
        }
        if (!parameters.isEmpty()) {
            members.add(parameters.entrySet().stream()
                    .map(entry -> quoted(entry.getKey()) + ":" + value(entry.getValue()))
                    .collect(Collectors.joining(",", "\"parameters\":{", "}")));
        }
        members.add(scenario.request().inputs().stream()
                .map(this::input)
                .collect(Collectors.joining(",", "\"inputs\":[", "]")));
        if (!scenario.request().outputs().isEmpty()) {
            members.add(scenario.request().outputs().stream()
                    .map(this::output)
                    .collect(Collectors.joining(",", "\"outputs\":[", "]")));
        }
        return "{" + String.join(",", members) + "}";
    }

    private String input(ClientRequest.Input input) {
        return "{\"name\":" + quoted(input.name()) + ",\"datatype\":" + quoted(input.datatype()) + ",\"shape\":"
                + input.shape()
                + (binary
                        ? ",\"parameters\":{\"binary_data_size\":" + input.data().length + "}}"
                        : ",\"data\":" + TensorText.write(input.datatype(), input.data()) + "}");
    }

    private String output(Scenario.Output output) {
        String classes = output.classes() > 0 ? "\"classification\":" + output.classes() + "," : "";
        return "{\"name\":" + quoted(output.name()) + ",\"parameters\":{" + classes + "\"binary_data\":" + binary
                + "}}";
    }

    private static Outcome outcome(RawHttpResponse response) {
        String text = new String(response.body(), StandardCharsets.ISO_8859_1);
        String length = response.headers().get(JSON_LENGTH);
        int jsonLength = length == null ? text.length() : Integer.parseInt(length);
        JsonReader reader = new JsonReader(new StringReader(text.substring(0, jsonLength)));
        reader.setStrictness(Strictness.LENIENT);
        JsonObject json = JsonParser.parseReader(reader).getAsJsonObject();
        if (response.status() != OK) {
            return new Outcome.Refused(
                    Integer.toString(response.status()),
                    decoded(json.get("error").getAsString()));
        }
        List<Outcome.Output> outputs = new ArrayList<>();
        int at = jsonLength;
        for (JsonElement element : json.getAsJsonArray("outputs")) {
            JsonObject output = element.getAsJsonObject();
            String datatype = output.get("datatype").getAsString();
            ByteString data;
            if (output.has("data")) {
                data = TensorText.read(datatype, output.getAsJsonArray("data"));
            } else {
                int size = output.getAsJsonObject("parameters")
                        .get("binary_data_size")
                        .getAsInt();
                data = ByteString.copyFrom(response.body(), at, size);
                at += size;
            }
            List<Long> shape = output.getAsJsonArray("shape").asList().stream()
                    .map(JsonElement::getAsLong)
                    .toList();
            outputs.add(new Outcome.Output(output.get("name").getAsString(), datatype, shape, data));
        }
        Map<String, String> parameters = new TreeMap<>();
        if (json.has("parameters")) {
            json.getAsJsonObject("parameters")
                    .asMap()
                    .forEach((key, value) -> parameters.put(key, value.getAsString()));
        }
        return new Outcome.Completed(List.of(new Outcome.Response(
                json.get("model_name").getAsString(),
                json.get("model_version").getAsString(),
                json.has("id") ? decoded(json.get("id").getAsString()) : "",
                parameters,
                outputs)));
    }

    private static String value(Object value) {
        return value instanceof String text ? quoted(text) : value.toString();
    }

    private static String quoted(String text) {
        return TensorText.quoted(new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String decoded(String bytes) {
        return new String(bytes(bytes), StandardCharsets.UTF_8);
    }
}

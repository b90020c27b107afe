package dev.nereid.distribution.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.vertx.core.json.JsonObject;
import java.io.IOException;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.Flow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class LoadRequestTest {
    @TempDir
    private Path directory;

    @Test
    void sendsAnEmptyObjectWithoutParameters() throws Exception {
        assertThat(text(new LoadRequest(Optional.empty(), Map.of(), false))).isEqualTo("{}");
    }

    @Test
    void sendsTheConfigurationAsAText() throws Exception {
        String config = "{\"backend\": \"x\u00fc\\n\"}";

        assertThat(new JsonObject(text(new LoadRequest(Optional.of(config), Map.of(), false))))
                .isEqualTo(new JsonObject().put("parameters", new JsonObject().put("config", config)));
    }

    @Test
    void sendsThatALoadIsForced() throws Exception {
        Path file = Files.write(directory.resolve("a"), new byte[] {0});

        assertThat(text(new LoadRequest(Optional.empty(), Map.of(), true)))
                .isEqualTo("{\"parameters\":{\"force\":true}}");
        assertThat(text(new LoadRequest(Optional.of("{}"), Map.of("x", file), true)))
                .isEqualTo("{\"parameters\":{\"config\":\"{}\",\"force\":true,\"file:x\":\"AA==\"}}");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 49_151, 49_152, 49_153, 200_000})
    void encodesFilesOfAnySize(int size) throws Exception {
        byte[] content = new byte[size];
        new Random(size).nextBytes(content);
        Path file = Files.write(directory.resolve("a"), content);

        JsonObject sent = new JsonObject(
                text(new LoadRequest(Optional.of("{}"), Map.of("1/model \"x\".onnx", file, "b", file), false)));

        JsonObject parameters = sent.getJsonObject("parameters");
        assertThat(parameters.fieldNames()).containsExactly("config", "file:1/model \"x\".onnx", "file:b");
        assertThat(Base64.getDecoder().decode(parameters.getString("file:1/model \"x\".onnx")))
                .isEqualTo(content);
        assertThat(Base64.getDecoder().decode(parameters.getString("file:b"))).isEqualTo(content);
    }

    @Test
    void failsIfAFileBecomesShorterMeanwhile() throws IOException {
        Path file = Files.write(directory.resolve("a"), new byte[100]);
        BodyPublisher body = new LoadRequest(Optional.of("{}"), Map.of("a", file), false).body();
        Files.write(file, new byte[99]);

        assertThatThrownBy(() -> bytes(body)).hasRootCauseMessage(file + ": became shorter while it was sent");
    }

    private static String text(LoadRequest request) throws Exception {
        BodyPublisher body = request.body();
        byte[] bytes = bytes(body);
        assertThat(body.contentLength()).isEqualTo(Math.max(1, bytes.length));
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Subscribes to a body, and returns all of it. */
    private static byte[] bytes(BodyPublisher body) throws Exception {
        BodySubscriber<byte[]> all = BodySubscribers.ofByteArray();
        body.subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                all.onSubscribe(subscription);
            }

            @Override
            public void onNext(ByteBuffer piece) {
                all.onNext(List.of(piece));
            }

            @Override
            public void onError(Throwable failure) {
                all.onError(failure);
            }

            @Override
            public void onComplete() {
                all.onComplete();
            }
        });
        return all.getBody().toCompletableFuture().get();
    }
}

package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** The response cache of a server. */
final class CacheTest {
    private static final String CACHED =
            GatedBackend.tensors(8, "INT32", "[ 2 ]") + "response_cache { enable: true }\n";

    private final GatedBackend backend = new GatedBackend();

    @Test
    void respondsFromTheCache() {
        try (LocalServer server = start()) {
            infer(server, "cached", "a", 5);
            infer(server, "cached", "b", 5);
            infer(server, "cached", "", 5);

            assertThat(backend.executed()).containsExactly("cached");
            InferenceTimings inferences = server.server()
                    .models()
                    .statistics(ModelRef.latest("cached"))
                    .getFirst()
                    .inferences();
            assertThat(inferences.success().count()).isEqualTo(3);
            assertThat(inferences.cacheHit().count()).isEqualTo(2);
            assertThat(inferences.cacheMiss().count()).isEqualTo(1);
        }
    }

    @Test
    void executesOtherRequestsAndThoseToModelsWithoutResponseCache() {
        try (LocalServer server = start()) {
            infer(server, "plain", "a", 5);
            infer(server, "plain", "b", 5);
            assertThat(backend.executed()).containsExactly("plain", "plain");

            infer(server, "cached", "a", 5);
            infer(server, "cached", "b", 6);
            assertThat(backend.executed()).containsExactly("plain", "plain", "cached", "cached");
        }
    }

    private LocalServer start() {
        return LocalServer.with(backend)
                .model("cached", CACHED)
                .model("plain", GatedBackend.tensors(8, "INT32", "[ 2 ]"))
                .options(options -> options.cache = Optional.of(CacheOptions.local(1 << 20)))
                .start();
    }

    private static void infer(LocalServer server, String model, String id, int number) {
        assertThat(server.send(server.client().request(model).id(id).input("INPUT0", Shape.of(1, 2), number, 7))
                        .one()
                        .requireOutput("OUTPUT0")
                        .ints())
                .containsExactly(number, 7);
    }
}

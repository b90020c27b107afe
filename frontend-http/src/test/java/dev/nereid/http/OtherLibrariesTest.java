package dev.nereid.http;

import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import io.vertx.core.Vertx;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.Test;

/** Tests what a program sees whose framework manages other versions of libraries. */
final class OtherLibrariesTest {
    @Test
    void failTheStartWithOneSentence() {
        NoClassDefFoundError missing = new NoClassDefFoundError("io/vertx/core/Deployable");
        InvocationHandler older = (_, _, _) -> {
            throw missing;
        };
        Vertx vertx = (Vertx) Proxy.newProxyInstance(Vertx.class.getClassLoader(), new Class<?>[] {Vertx.class}, older);
        try (LeakCheckingMemory memory = new LeakCheckingMemory()) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> HttpFrontend.start(
                            vertx, new FakeInferenceServer(memory), HttpOptions.of(http -> http.port = 0)))
                    .withMessage(
                            "HTTP front end: Vert.x and Netty of other versions (expected: Vert.x 5.1 and Netty 4.2, or"
                                    + " later; import their BOMs before other BOMs): " + missing)
                    .withCause(missing);
        }
    }
}

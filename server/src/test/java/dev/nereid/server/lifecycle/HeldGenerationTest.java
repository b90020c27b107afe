package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.server.response.HeldResponse;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.testkit.FakeResponse;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what counts as a response that another model holds. */
@Timeout(60)
final class HeldGenerationTest {
    @TempDir
    private Path directory;

    @AutoClose
    private TestGenerations generations;

    private final LiveGenerations live = new LiveGenerations(FatalErrorHandler.NONE, () -> {});
    private final ResponseHolder holder =
            live.holders().add(new ModelRef("caller", 3), "caller", "tokens", Runnable::run);

    @BeforeEach
    void begin() {
        generations = new TestGenerations(directory, System::nanoTime);
    }

    @Test
    void aResponseOfAnotherLoadOfTheVersionIsNotHeld() throws Exception {
        Generation replaced = generations.begin(live, "m", 1);
        Generation loaded = generations.begin(live, "m", 1);

        try (InferResponse read = respond(replaced)) {
            assertThat(read.version()).isEqualTo(1);
            holder.add(respond(loaded), holder.sends());

            assertThat(replaced.isHeld()).isFalse();
            assertThat(loaded.isHeld()).isTrue();
            assertThat(live.holders().reason(live.sources("m", 1)))
                    .isEqualTo("waits for responses that are not closed: 1 held by model 'caller', version 3, plugin"
                            + " 'tokens'");
        }

        discard(replaced, loaded);
    }

    @Test
    void theReasonNamesNoHolderOfAnotherModelOfTheName() throws Exception {
        Generation one = live.begin("a/m", generations.load("m", 1), 0, Generation.Hooks.NONE);
        Generation other = live.begin("b/m", generations.load("m", 1), 0, Generation.Hooks.NONE);

        holder.add(respond(other), holder.sends());

        assertThat(live.holders().reason(live.sources("a/m", 1))).isEmpty();
        assertThat(live.holders().reason(live.sources("b/m", 1))).contains("1 held by model 'caller'");
        discard(one, other);
    }

    /** The responses that the model holds may be in use while the client reads. */
    @Test
    void aModelWithAResponseThatAClientReadsIsNotHeld() throws Exception {
        Generation generation = generations.begin(live, "m", 1);
        ResponseHolder own = generation.model().responses().orElseThrow();
        own.add(FakeResponse.of(true), own.sends());

        try (InferResponse read = respond(generation)) {
            assertThat(read.isFinal()).isTrue();
            assertThat(generation.isHeld()).isFalse();
            holder.add(respond(generation), holder.sends());
            assertThat(generation.isHeld()).as("beside a held one").isFalse();
        }

        assertThat(generation.isHeld()).isTrue();
        discard(generation);
    }

    @Test
    void aRequestWithSeveralHeldResponsesCountsOnce() throws Exception {
        Generation generation = generations.begin(live, "m", 1);
        ResponseHolder.Sent request = holder.sends();
        InferResponse read = respond(generation);

        holder.add(respond(generation), request);
        holder.add(respond(generation), request);

        Object source = generation.model().scheduler().source();
        assertThat(live.holders().requestsOf(source)).isEqualTo(1);
        assertThat(live.holders().reason(Set.of(source))).contains("2 held by model 'caller'");
        read.close();
        discard(generation);
    }

    /** Another model may have passed on what it keeps, even to a client. */
    @Test
    void aLeaseCountsAsHeld() throws Exception {
        Generation generation = generations.begin(live, "m", 1);
        HeldResponse held = holder.add(respond(generation), holder.sends());
        HeldResponse.HeldLease lease = held.hold(0).orElseThrow();
        held.close();

        Object source = generation.model().scheduler().source();
        assertThat(generation.model().scheduler().openResponses()).isEqualTo(1);
        assertThat(generation.isHeld()).isTrue();
        assertThat(live.holders().sizeOf(source)).isEqualTo(1);
        assertThat(live.holders().responsesOf(source)).isZero();
        lease.end();
        assertThat(generation.isHeld()).isFalse();
        discard(generation);
    }

    @Test
    void aPluginThatEndsSomeIsSearchedSoonAgain() {
        long first = Generation.nextSearchNanos(0, true);

        assertThat(Generation.nextSearchNanos(first, false)).isEqualTo(2 * first);
        assertThat(Generation.nextSearchNanos(100 * first, true)).isEqualTo(first);
    }

    private void discard(Generation... begun) {
        holder.close();
        List.of(begun).forEach(live::discard);
        assertThat(live.all()).isEmpty();
    }

    private static InferResponse respond(Generation generation) {
        CompletableFuture<InferResponse> response = new CompletableFuture<>();
        InputTensor input = InputTensor.of(
                "INPUT0",
                "FP32",
                new long[] {1, 1},
                Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, 7),
                MemoryPlace.HOST);
        InferRequest request = InferRequest.of(ModelRef.latest("m"), List.of(input), () -> {});
        ServedModel model = generation.model();
        model.submit(model.check(request, System.nanoTime()), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse received) {
                response.complete(received);
            }

            @Override
            public void onCompleted() {
                response.completeExceptionally(new AssertionError("no response"));
            }

            @Override
            public void onError(InferenceException error) {
                response.completeExceptionally(error);
            }
        });
        InferResponse received = response.join();
        while (model.scheduler().isWorking()) {
            Thread.onSpinWait(); // the response is delivered before its execution ends
        }
        return received;
    }
}

package dev.nereid.scheduler.request;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.TensorLease;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Checks interleavings of a lease, the close of its response, and the end of the execution, which frees the inputs
 * early. Inputs and output are freed once, the output not while it is leased, and nothing is in flight then.
 */
@Tag("slow")
final class OutputLeaseLincheckTest {
    @Test
    void freesOnce() {
        new ModelCheckingOptions()
                .iterations(1) // three operations on three threads: there is one scenario
                .invocationsPerIteration(4_000)
                .threads(3)
                .actorsPerThread(1)
                .actorsBefore(0)
                .actorsAfter(0)
                .check(Delivered.class);
    }

    /** A request whose response was delivered, and whose execution has not ended. */
    public static class Delivered {
        private final AtomicInteger inputs = new AtomicInteger();
        private final AtomicInteger outputs = new AtomicInteger();
        private final AtomicInteger violations = new AtomicInteger();
        private final ModelScope model =
                Scopes.of(ModelSettings.builder("m", 1).build(), new LeakCheckingMemory(), () -> 0);
        private final ScheduledRequest request = new ScheduledRequest(
                model,
                null,
                new CheckedRequest(
                        new ModelVersion("m", 1),
                        "",
                        RequestInputs.of(List.of(), 1, inputs::incrementAndGet),
                        RequestOutputs.all(List.of()),
                        Map.of(),
                        RequestOptions.DEFAULT,
                        0),
                new RecordingObserver(),
                0);
        private final FinishedResponse response = new FinishedResponse(
                request,
                List.of(new NamedTensor(
                        "OUT", Tensor.of(DataType.INT8, Shape.of(0), MemorySegment.ofArray(new byte[0])))),
                List.of(ReferenceCountedMemory.of(outputs::incrementAndGet, null)),
                Map.of(),
                true);

        /** The execution ends. */
        @Operation(runOnce = true)
        public void end() {
            request.freeInputs();
            request.release();
        }

        /** The observer closes the response. */
        @Operation(runOnce = true)
        public void close() {
            response.close();
        }

        /** Another thread leases the output, unless it is too late. */
        @Operation(runOnce = true)
        public void lease() {
            TensorLease lease;
            try {
                lease = response.lease(0);
            } catch (IllegalStateException e) {
                return; // closed
            }
            if (outputs.get() > 0 || model.drain().count() != 1) {
                violations.incrementAndGet();
            }
            lease.close();
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            int inFlight = model.drain().count();
            if (inputs.get() != 1 || outputs.get() != 1 || inFlight != 0 || violations.get() > 0) {
                throw new AssertionError("inputs freed: " + inputs + ", outputs freed: " + outputs + ", in flight: "
                        + inFlight + ", violations: " + violations + " (expected: 1, 1, 0, 0)");
            }
        }
    }
}

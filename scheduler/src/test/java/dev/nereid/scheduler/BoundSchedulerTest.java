package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads of instances that have a source of their own. */
@Timeout(60)
final class BoundSchedulerTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @Test
    void startsTheThreadOfAnInstanceWithItsFirstSequence() {
        List<FakeInstance> instances =
                List.of(new FakeInstance(FakeInstance::copy), new FakeInstance(FakeInstance::copy));
        BoundScheduler scheduler = new BoundScheduler(model, memory, instances);
        assertThat(threads()).isEmpty();
        assertThat(scheduler.isReady()).isTrue();

        RecordingObserver first = new RecordingObserver();
        scheduler.submit(request(true, false), first);
        first.await();
        assertThat(threads()).hasSize(1);
        RecordingObserver last = new RecordingObserver();
        scheduler.submit(request(false, true), last);
        last.await();
        assertThat(threads()).hasSize(1);
        assertThat(first.responses()).hasSize(1);
        assertThat(last.responses()).hasSize(1);
        first.close();
        last.close();
        scheduler.close();

        assertThat(threads()).isEmpty();
        assertThat(instances).allMatch(FakeInstance::isClosed);
        assertThat(instances).flatExtracting(FakeInstance::violations).isEmpty();
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("instance/bound/"))
                .toList();
    }

    private CheckedRequest request(boolean start, boolean end) {
        Sequence position = new Sequence(new Sequence.Id.Numeric(7), start, end);
        return Requests.to(model, memory)
                .options(new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)))
                .floats("IN", Shape.of(1, 2), 1)
                .of(1);
    }
}

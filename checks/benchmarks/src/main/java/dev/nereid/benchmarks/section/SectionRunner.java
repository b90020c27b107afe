package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.python.PythonSection;
import dev.nereid.benchmarks.pytorch.PyTorchSection;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.Section;
import java.io.IOException;

/** Measures a section. Static functions only. */
public final class SectionRunner {
    private SectionRunner() {}

    /** Measures. Blocks. */
    public static Table measure(Section section, BenchmarkRun bench) throws IOException, InterruptedException {
        return switch (section) {
            case HTTP -> HttpSection.measure(bench);
            case JSON -> JsonSection.measure(bench);
            case CODEC -> CodecSection.measure(bench);
            case SCHEDULER -> SchedulerSection.measure(bench);
            case SEQUENCES -> SequenceSection.measure(bench);
            case ENSEMBLES -> EnsembleSection.measure(bench);
            case WAITING -> WaitingSection.measure(bench);
            case SHM -> SharedMemorySection.measure(bench);
            case TLS -> TlsSection.measure(bench);
            case GRPC -> GrpcSection.measure(bench);
            case MLP -> MlpSection.measure(bench);
            case BATCHING -> BatchingSection.measure(bench);
            case SQUEEZENET -> SqueezenetSection.measure(bench);
            case TENSORFLOW -> TensorFlowSection.measure(bench);
            case PYTORCH -> PyTorchSection.measure(bench);
            case PYTHON -> PythonSection.measure(bench);
            case START -> StartSection.measure(bench);
            case MODELS -> ModelsSection.measure(bench);
            case MINUTE -> FirstMinuteSection.measure(bench);
        };
    }
}

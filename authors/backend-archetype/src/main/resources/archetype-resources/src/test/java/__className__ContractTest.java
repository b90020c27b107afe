package ${package};

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.BackendContract;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
#if( $form == "framework" )
import java.nio.file.Path;
#end

/** Tests what every backend has to do, by the requests and responses below: batches, instances, loads, leaks. */
final class ${className}ContractTest extends BackendContract {
    @Override
    protected BackendProvider provider() {
        return new ${className}#if( $form == "framework" )Provider#end();
    }

    @Override
    protected ContractModel model() {
        return ContractModel.of(ModelSettings.builder("${artifactId}", 1)
                        .maxBatchSize(8)
                        .input(TensorSpec.of("INPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .output(TensorSpec.of("OUTPUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                        .build())
#if( $form == "framework" )
                .in(Path.of("models/${artifactId}"), Path.of("models/${artifactId}/1"))
#end
                .with(ContractExample.request()
                        .input("INPUT", Shape.of(1, 3), 1f, 2.5f, -3f)
                        .output("OUTPUT", Shape.of(1, 3), 2 * 1f, 2 * 2.5f, 2 * -3f))
                .with(ContractExample.request()
                        .input("INPUT", Shape.of(2, 2), 0f, 1f, 2f, 3f)
                        .output("OUTPUT", Shape.of(2, 2), 2 * 0f, 2 * 1f, 2 * 2f, 2 * 3f));
    }
}

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeMap$;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;

/**
 * The one partition of an RDD of Arrow batches, computed on the calling thread as an executor's task would, again and
 * again over other rows. First the inputs get their rows, then each table that is kept for the run, then the result.
 */
public final class DriverTask {
    private static long attempts = 0;

    private final Properties settings;
    private final List inputs = new ArrayList();
    private final List kept = new ArrayList();
    private RDD batches;

    public DriverTask(Properties settings) {
        this.settings = settings;
    }

    /** One more input, as a frame to plan with. */
    public Dataset input(SparkSession session, String schema) {
        Rows rows = new Rows(session.sparkContext(), (StructType) StructType.fromJson(schema), null);
        inputs.add(rows);
        return rows.frame(session);
    }

    /** A frame over inputs whose rows are computed once a run, however many read them. */
    public Dataset keep(SparkSession session, Dataset frame) {
        Rows rows = new Rows(session.sparkContext(), frame.schema(), frame.queryExecution().toRdd());
        kept.add(rows);
        return rows.frame(session);
    }

    /** What is computed. */
    public void result(RDD arrowBatches) {
        batches = arrowBatches;
    }

    /** The result's batches for these inputs; both have the length before each batch. */
    public byte[] run(byte[] given) throws Exception {
        long attempt;
        synchronized (DriverTask.class) {
            attempt = --attempts;
        }
        TaskMemoryManager memory = new TaskMemoryManager(SparkEnv.get().memoryManager(), attempt);
        TaskContextImpl context = new TaskContextImpl(
            0, 0, 0, attempt, 0, 1, memory, settings, null, new TaskMetrics(), 1,
            scala.collection.immutable.Map$.MODULE$.empty());
        TaskContext$.MODULE$.setTaskContext(context);
        try {
            ByteBuffer rest = ByteBuffer.wrap(given);
            for (int i = 0; i < inputs.size(); i++) {
                byte[] batch = new byte[rest.getInt()];
                rest.get(batch);
                ((Rows) inputs.get(i)).take(batch, context);
            }
            for (int i = 0; i < kept.size(); i++) {
                ((Rows) kept.get(i)).fill(context);
            }
            return written(batches.iterator(batches.partitions()[0], context));
        } finally {
            try {
                context.markTaskCompleted(scala.Option.empty());
            } finally {
                memory.cleanUpAllAllocatedMemory();
                TaskContext$.MODULE$.unset();
            }
        }
    }

    private static byte[] written(scala.collection.Iterator found) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        while (found.hasNext()) {
            byte[] batch = (byte[]) found.next();
            out.writeInt(batch.length);
            out.write(batch);
        }
        return bytes.toByteArray();
    }

    /** A leaf of a plan, with other rows in each run. */
    public static final class Rows extends RDD {
        private final StructType schema;
        private final transient RDD source;
        private final transient UnsafeProjection projection;
        private final transient List rows = new ArrayList();

        public Rows(SparkContext spark, StructType schema, RDD source) {
            super(
                spark,
                (scala.collection.immutable.Seq) scala.collection.immutable.Seq$.MODULE$.empty(),
                scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class));
            this.schema = schema;
            this.source = source;
            this.projection = UnsafeProjection.create(schema);
        }

        /** Said to be small: rows that may be many would be shuffled before they are joined. */
        public Dataset frame(SparkSession session) {
            Statistics small = new Statistics(
                scala.math.BigInt.apply(1000), scala.Option.empty(), AttributeMap$.MODULE$.empty(), false);
            return Dataset.ofRows(session, new LogicalRDD(
                DataTypeUtils.toAttributes(schema), this, SinglePartition$.MODULE$,
                (scala.collection.immutable.Seq) scala.collection.immutable.Seq$.MODULE$.empty(), false,
                scala.Option.empty(), session, scala.Option.apply(small), scala.Option.empty()));
        }

        public void take(byte[] batch, TaskContext context) {
            copy(ArrowConverters$.MODULE$.fromBatchIterator(
                scala.collection.Iterator$.MODULE$.single(batch), schema, "UTC", false, false, context));
        }

        public void fill(TaskContext context) {
            copy(source.iterator(source.partitions()[0], context));
        }

        private void copy(scala.collection.Iterator found) {
            rows.clear();
            while (found.hasNext()) {
                rows.add(projection.apply((InternalRow) found.next()).copy());
            }
        }

        public scala.collection.Iterator compute(Partition split, TaskContext context) {
            return scala.jdk.javaapi.CollectionConverters.asScala(rows.iterator());
        }

        public Partition[] getPartitions() {
            return new Partition[] {new FilePartition(0, new PartitionedFile[0])};
        }
    }
}

import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/rot'; w='/tmp/attackq/rot4'; shutil.rmtree(w,ignore_errors=True); os.makedirs(w)
subprocess.run(['cp','-a',d+'/gold.d',w+'/x.svcdb.d']); shutil.copy(d+'/gold',w+'/x.svcdb')
import glob
m=glob.glob(w+'/x.svcdb.d/views/query*/data.mdb')[0]; os.truncate(m,3769740)
c=cli('query','-D',w+'/x.svcdb','/','n < 10'); print('cli',c.returncode,c.stdout[:100],c.stderr[-300:])
subprocess.run(['rm','-rf',w+'/x.svcdb.d']); subprocess.run(['cp','-a',d+'/gold.d',w+'/x.svcdb.d']); os.truncate(m,3769740)
try:
    s=S(w+'/x.svcdb')
    for i in range(4):
        for wh in ([],{'field':'t','op':'search','value':'war'},{'field':'n','op':'gt','value':11000}):
            try: r=s.query('/',wh,aggregate={'count':True}); print(r[0],str(r[1])[:150])
            except Exception as e: print(repr(e)[:100])
        try: print('GET',s.q('GET','/files/d1/f1.json')[0], s.q('GET','/system/health')[1].get('findings'))
        except Exception as e: print('GET',repr(e)[:100])
        time.sleep(3)
    print(open(w+'/x.svcdb.log').read()[-800:]); s.stop()
except SystemExit as e: print('nostart')
print(open(w+'/x.svcdb.log').read()[-800:])
